"""Libraries whose content polyop has verified by a digest, and their open files.

The loader gets the very file that was hashed, not its path, because the file at the path could be replaced
between the two. A look-up in the build cache leaves the open file here, for the call that loads it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

from ..core import locks
from ..core.errors import LibraryError

_MAX_OPEN_FILES = 4
"""Open files that wait to be loaded. The oldest is closed first; its library is then hashed again."""
_digests: dict[str, str] = {}
"""Resolved path of a verified library -> its SHA-256."""
_files: dict[str, int] = {}
"""Resolved path of a verified library -> its open file."""
_sources: set[str] = set()
"""Resolved paths of the sources that polyop wrote."""
_source_paths: set[str] = set()
"""The same paths before they were resolved, so that each is resolved once."""
_lock = locks.shared("table of verified libraries", locks.Level.TABLE)


def verify(
    path: str, size: int | None, sha256: str, check: Callable[[os.stat_result], None] = lambda status: None
) -> bool:
    """Whether the file at a resolved ``path`` has this content. If so, it stays open until it is loaded.

    ``size`` is the number of bytes if it is known; a file of another size is not hashed. ``check`` is called
    with the status of the open file first, and may raise.
    """
    file = _open_verified(path, size, sha256, check)
    if file is not None:
        _keep_open(path, sha256, file)
    return file is not None


def has_digest(
    path: str, size: int, sha256: str, check: Callable[[os.stat_result], None] = lambda status: None
) -> bool:
    """Whether a file that is not loaded, such as an object, has this content: see :func:`verify`."""
    file = _open_verified(path, size, sha256, check)
    if file is not None:
        os.close(file)
    return file is not None


def _open_verified(
    path: str, size: int | None, sha256: str, check: Callable[[os.stat_result], None]
) -> int | None:
    """Return the open file if it has this content, else None."""
    file = open_plain(path)
    if file is None:
        return None
    try:
        status = os.fstat(file)
        check(status)
        matches = size in (None, status.st_size) and digest(file) == sha256
    except BaseException:
        os.close(file)
        raise
    if matches:
        return file
    os.close(file)
    return None


def remember_library(path: str, sha256: str) -> None:
    """Remember the content of a library that was just built."""
    with _lock:
        _digests[os.path.realpath(path)] = sha256


def is_ours(path: str) -> bool:
    """Whether the resolved path is that of a verified library, or of a source that polyop wrote."""
    return path in _digests or path in _sources


def remember_source(path: str) -> None:
    """Remember a source that polyop itself wrote: code that was passed as text, or generated code."""
    if path not in _source_paths:
        _source_paths.add(path)
        _sources.add(os.path.realpath(path))


def take(path: str) -> int | None:
    """Return the open file of a verified library, or None for other libraries. The caller closes it.

    Raises ``LibraryError`` if the file is no longer the one that was verified.
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
    """Close the open file of a library that is loaded already."""
    with _lock:
        file = _files.pop(path, None)
    if file is not None:
        os.close(file)


def open_plain(path: str) -> int | None:
    """Open a regular file for reading. Return None for a link, a pipe, and a file that cannot be opened."""
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


def _keep_open(path: str, sha256: str, file: int) -> None:
    with _lock:
        _digests[path] = sha256
        surplus = [_files.pop(path)] if path in _files else []
        _files[path] = file
        while len(_files) > _MAX_OPEN_FILES:
            surplus.append(_files.pop(next(iter(_files))))
    for old in surplus:
        os.close(old)
