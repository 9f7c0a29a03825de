"""Locks on the entries of the build cache, so that an entry in use is not removed.

Each entry is one byte of the file ``in-use``; its key gives the offset. A process that uses a library holds
a shared lock on the byte until it ends. A build holds one on each of its objects until they are linked. A
process that removes the entry holds an exclusive lock meanwhile.
So a process needs one open file, however many libraries it loads.

The locks are Linux's open file description locks: child processes inherit them, and the kernel releases them
when a process is killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from collections.abc import Iterator

from ..core import locks

FILE = "in-use"
_LOCK = "hhqqi4x"
"""``struct flock``: l_type, l_whence, l_start, l_len, l_pid."""
_DIGITS = 15
"""Hexadecimal digits of a key that give its offset: 60 bits, which every file system allows as an offset."""
_held: dict[str, tuple[int, set[str]]] = {}
"""Folder of a cache -> its open lock file, and the keys of the entries that this process has locked."""
_lock = locks.shared("table of cache entries in use", locks.Level.TABLE)


def hold(folder: str, key: str) -> None:
    """Hold a shared lock on an entry until this process ends. Waits while another process removes the entry.

    Does nothing for a cache without a lock file, and on a file system without locks.
    """
    with _lock:
        file, keys = _lock_file(folder)
        if file < 0 or key in keys:
            return
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.fcntl(file, fcntl.F_OFD_SETLKW, _flock(fcntl.F_RDLCK, key))
            keys.add(key)


class Users:
    """The shared locks of one build on the objects that it links; :meth:`release` ends them."""

    def __init__(self, folder: str) -> None:
        self._folder, self._file = folder, -1
        self._lock = locks.own("objects of a build", locks.Level.TABLE)

    def hold(self, key: str) -> None:
        """Hold a lock on an entry, as the function :func:`hold` does."""
        with self._lock:
            if self._file < 0:
                self._file = _open(self._folder)
            if self._file >= 0:
                with contextlib.suppress(OSError):  # a file system without locks
                    fcntl.fcntl(self._file, fcntl.F_OFD_SETLKW, _flock(fcntl.F_RDLCK, key))

    def release(self) -> None:
        """End all locks."""
        with self._lock:
            if self._file >= 0:
                os.close(self._file)
            self._file = -1


def in_use(folder: str, key: str) -> bool:
    """Whether any process, including this one, uses an entry."""
    file = _open(folder)
    if file < 0:
        return False
    try:
        answer = fcntl.fcntl(file, fcntl.F_OFD_GETLK, _flock(fcntl.F_WRLCK, key))
        return bool(struct.unpack(_LOCK, answer)[0] != fcntl.F_UNLCK)
    except OSError:
        return False
    finally:
        os.close(file)


@contextlib.contextmanager
def exclusive(folder: str, key: str) -> Iterator[bool]:
    """Hold an exclusive lock on an entry during the block. Yields False if a process uses the entry."""
    file = _open(folder)
    locked = file >= 0
    try:
        if locked:
            try:
                fcntl.fcntl(file, fcntl.F_OFD_SETLK, _flock(fcntl.F_WRLCK, key))
            except OSError:
                locked = False
        yield locked
    finally:
        if file >= 0:
            os.close(file)


def _flock(kind: int, key: str) -> bytes:
    return struct.pack(_LOCK, kind, os.SEEK_SET, int(key[:_DIGITS], 16), 1, 0)


def _lock_file(folder: str) -> tuple[int, set[str]]:
    """Return this process's open lock file and its locked keys. Opens the file again if it was replaced."""
    file, keys = _held.get(folder, (-1, set()))
    try:
        current = os.stat(f"{folder}/{FILE}")
        if file >= 0 and os.path.samestat(current, os.fstat(file)):
            return file, keys
    except OSError:
        pass
    _held[folder] = _open(folder), set()
    return _held[folder]


def _open(folder: str) -> int:
    """Return the open lock file, or -1 if the cache does not exist or may not be opened."""
    path = f"{folder}/{FILE}"
    for flags in (os.O_RDWR | os.O_CREAT, os.O_RDONLY):
        with contextlib.suppress(OSError):
            return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    return -1
