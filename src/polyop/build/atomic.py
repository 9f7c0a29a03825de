"""Write files atomically: a reader finds the old file, the new file or none, never half of one.

The new content goes into a temporary file in the same folder, which is then renamed. That holds with several
writers, and when a writer is killed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from ..binary.trust import make_private


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write ``text`` to ``path`` atomically.

    Only the user may write the file, whatever the umask is. Missing folders are created for the user alone.
    Raises ``OSError``.
    """
    make_private(os.path.dirname(path))
    with replacing(path) as name, open(name, "w", encoding="utf-8", opener=_create_private) as file:
        file.write(text)


def _create_private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_EXCL, 0o644)


def copy(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Copy a file to ``target`` atomically. A process that has the old file open keeps the old content."""
    import shutil

    with replacing(target) as name:
        shutil.copy(source, name)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[str]:
    """Yield the name of a file in the same folder; rename that file to ``path`` if the block succeeds.

    If it raises, the file is deleted and ``path`` is as it was.
    """
    temporary = _beside(path)
    try:
        yield temporary
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def probe(path: str | os.PathLike[str]) -> None:
    """Raise ``OSError`` if :func:`write_text` could not write ``path``, which stays as it is."""
    temporary = _beside(path)
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
    os.unlink(temporary)


def _beside(path: str | os.PathLike[str]) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.{os.getpid()}.{os.urandom(4).hex()}")
