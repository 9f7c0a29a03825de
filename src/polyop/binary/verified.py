"""Libraries that polyop knows by their content, and the open files that were compared with it.

The loader is given the very file that was hashed, not its path: what lies there could have been
replaced in between. A look-up in the build cache leaves its open file here for the call that loads it.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable

from ..core.errors import LibraryError

_KEPT = 4
"""Open files that wait to be loaded; a library whose file was closed meanwhile is hashed again."""
_digests: dict[str, str] = {}
_files: dict[str, int] = {}
_texts: set[str] = set()
_written: set[str] = set()
_lock = threading.Lock()


def verify(
    path: str, size: int | None, sha256: str, check: Callable[[os.stat_result], None] = lambda seen: None
) -> bool:
    """Whether the file at a resolved ``path`` has this content; it stays open until it is loaded.

    ``size`` is the number of bytes, where it is known: another one needs no hash.
    ``check`` looks at the open file first, and may raise.
    """
    file = open_plain(path)
    if file is None:
        return False
    try:
        seen = os.fstat(file)
        check(seen)
        whole = size in (None, seen.st_size) and digest(file) == sha256
    except BaseException:
        os.close(file)
        raise
    if whole:
        _keep(path, sha256, file)
    else:
        os.close(file)
    return whole


def remember_library(path: str, sha256: str) -> None:
    """Remember the content of a library that was built just now."""
    with _lock:
        _digests[os.path.realpath(path)] = sha256


def is_ours(path: str) -> bool:
    """Whether the resolved path is that of a verified library, or of a text that polyop wrote."""
    return path in _digests or path in _texts


def remember_source(path: str) -> None:
    """Remember a source that polyop itself wrote: code that was given as text, or generated."""
    if path not in _written:
        _written.add(path)
        _texts.add(os.path.realpath(path))


def take(path: str) -> int | None:
    """Return the open file of a verified library, for the caller to close; None for all others.

    Raises ``LibraryError`` where the file is no longer what was verified.
    """
    with _lock:
        file, sha256 = _files.pop(path, None), _digests.get(path)
    if sha256 is None or file is not None:
        return file
    file = open_plain(path)
    if file is not None and digest(file) == sha256:
        return file
    if file is not None:
        os.close(file)
    rule = "was changed or removed after it was built and verified"
    raise LibraryError(f"library {path}", rule, hint="define the operator again: it is built again")


def drop(path: str) -> None:
    """Close the file of a library that is loaded already."""
    with _lock:
        file = _files.pop(path, None)
    if file is not None:
        os.close(file)


def open_plain(path: str) -> int | None:
    """Open a plain file for reading, neither through a link nor a pipe; None where there is none."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    return None


def digest(file: int) -> str:
    """Return the SHA-256 of an open file, in hexadecimal."""
    from . import hashes

    return hashes.digest(file)


def _keep(path: str, sha256: str, file: int) -> None:
    with _lock:
        _digests[path] = sha256
        closed = [_files.pop(path)] if path in _files else []
        _files[path] = file
        while len(_files) > _KEPT:
            closed.append(_files.pop(next(iter(_files))))
    for old in closed:
        os.close(old)
