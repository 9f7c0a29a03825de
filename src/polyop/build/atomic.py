"""Files that are either whole or absent, whoever else writes them and whenever one is killed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from ..binary.trust import make_private


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write ``text`` to ``path``: readers see the old file or the new one.

    Others may not write it, whatever the umask is; folders that are missing are the user's alone.
    Raises ``OSError``.
    """
    make_private(os.path.dirname(path))
    with _replacing(path) as fresh, open(fresh, "w", encoding="utf-8", opener=_unshared) as file:
        file.write(text)


def _unshared(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_EXCL, 0o644)


def copy(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Copy a file to ``target`` in one step; a process that has the old one open keeps it."""
    import shutil

    with _replacing(target) as fresh:
        shutil.copy(source, fresh)


@contextlib.contextmanager
def _replacing(path: str | os.PathLike[str]) -> Iterator[str]:
    """Give a name beside ``path`` that becomes ``path`` when the block has succeeded."""
    folder, name = os.path.split(path)
    fresh = os.path.join(folder, f".{name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        yield fresh
        os.replace(fresh, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(fresh)
        raise
