"""Which processes use which entries of the cache, and taking one that nobody uses.

An entry is one byte of the file ``in-use``, chosen by its key: who uses the entry holds a shared lock on
the byte until the process ends, who removes the entry holds it alone meanwhile. So a process needs one
open file however many libraries it loads. The locks are Linux's "open file description" locks: children
share them, the system frees them when a process is killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import threading
from collections.abc import Iterator

FILE = "in-use"
_LOCK = "hhqqi4x"
"""``struct flock``: the kind of lock, where offsets count from, the first byte, how many, a process."""
_DIGITS = 15
"""Of a key, as the number of a byte: 60 bits are within the longest file."""
_held: dict[str, tuple[int, set[str]]] = {}
_lock = threading.Lock()


def hold(folder: str, key: str) -> None:
    """Keep an entry of the cache in a folder as long as this process lives.

    Waits while another removes it. A cache that this user can only read is used without.
    """
    with _lock:
        file, keys = _opened(folder)
        if file < 0 or key in keys:
            return
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.fcntl(file, fcntl.F_OFD_SETLKW, _row(fcntl.F_RDLCK, key))
            keys.add(key)


def in_use(folder: str, key: str) -> bool:
    """Whether any process, this one too, uses an entry."""
    file = _open(folder)
    if file < 0:
        return False
    try:
        answer = fcntl.fcntl(file, fcntl.F_OFD_GETLK, _row(fcntl.F_WRLCK, key))
        return bool(struct.unpack(_LOCK, answer)[0] != fcntl.F_UNLCK)
    except OSError:
        return False
    finally:
        os.close(file)


@contextlib.contextmanager
def exclusive(folder: str, key: str) -> Iterator[bool]:
    """Keep others from using an entry during the block; False where one uses it already."""
    file = _open(folder)
    free = file >= 0
    try:
        if free:
            try:
                fcntl.fcntl(file, fcntl.F_OFD_SETLK, _row(fcntl.F_WRLCK, key))
            except OSError:
                free = False
        yield free
    finally:
        if file >= 0:
            os.close(file)


def _row(kind: int, key: str) -> bytes:
    return struct.pack(_LOCK, kind, os.SEEK_SET, int(key[:_DIGITS], 16), 1, 0)


def _opened(folder: str) -> tuple[int, set[str]]:
    """Return the file that this process has its locks on; another one where the cache was made anew."""
    file, keys = _held.get(folder, (-1, set()))
    try:
        here = os.stat(f"{folder}/{FILE}")
        if file >= 0 and os.path.samestat(here, os.fstat(file)):
            return file, keys
    except OSError:
        pass
    _held[folder] = _open(folder), set()
    return _held[folder]


def _open(folder: str) -> int:
    """Return the open file, or -1 for a cache that is not there or cannot be locked."""
    path = f"{folder}/{FILE}"
    for flags in (os.O_RDWR | os.O_CREAT, os.O_RDONLY):
        with contextlib.suppress(OSError):
            return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    return -1
