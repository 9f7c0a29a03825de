"""The files that a compile has read, and whether they have changed since.

A file counts as unchanged if its size and both its times are the same. Otherwise its content decides.
"""

from __future__ import annotations

import os
import stat
import time
from typing import NamedTuple

from ..binary.hashes import digest

SETTLED = 50_000_000
"""Nanoseconds. A file modified more recently than this could change again without a new time stamp."""


class Input(NamedTuple):
    """A file as it was when it was read. Times of 0 mean that only the content decides.

    ``modified`` and ``changed`` are st_mtime_ns and st_ctime_ns.
    """

    path: str
    size: int
    modified: int
    changed: int
    sha256: str

    @classmethod
    def of(cls, path: str) -> Input:
        """Return the file as it is now. Raises ``OSError``."""
        status = os.stat(path)
        sha256 = digest(path)
        settled = time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > SETTLED
        times = (status.st_mtime_ns, status.st_ctime_ns) if settled else (0, 0)
        return cls(path, status.st_size, *times, sha256)

    def refreshed(self) -> Input | None:
        """Return this input, with new times if the file was only touched; None if its content has changed."""
        try:
            status = os.stat(self.path)
            if status.st_size != self.size or not stat.S_ISREG(status.st_mode):
                return None
            if (status.st_mtime_ns, status.st_ctime_ns) == (self.modified, self.changed):
                return self
            current = Input.of(self.path)
        except OSError:
            return None
        return current if current.sha256 == self.sha256 else None
