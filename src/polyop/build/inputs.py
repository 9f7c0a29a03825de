"""The files a compile has read, known again by content.

A file that has kept its size and both its times is taken as unchanged without reading it.
"""

from __future__ import annotations

import os
import stat
import time
from typing import NamedTuple

from ..binary.hashes import digest

SETTLED = 50_000_000
"""Nanoseconds: a file changed more recently than this could change again at the same time stamp."""


class Input(NamedTuple):
    """A file as it was when it was read. Times of 0 mean that only the content decides."""

    path: str
    size: int
    modified: int
    changed: int
    sha256: str

    @classmethod
    def of(cls, path: str) -> Input:
        """Return the file as it is now. Raises ``OSError``."""
        seen = os.stat(path)
        sha256 = digest(path)
        settled = time.time_ns() - max(seen.st_mtime_ns, seen.st_ctime_ns) > SETTLED
        times = (seen.st_mtime_ns, seen.st_ctime_ns) if settled else (0, 0)
        return cls(path, seen.st_size, *times, sha256)

    def now(self) -> Input | None:
        """Return this, or the same content with its new times, or None when it has changed."""
        try:
            seen = os.stat(self.path)
            if seen.st_size != self.size or not stat.S_ISREG(seen.st_mode):
                return None
            if (seen.st_mtime_ns, seen.st_ctime_ns) == (self.modified, self.changed):
                return self
            fresh = Input.of(self.path)
        except OSError:
            return None
        return fresh if fresh.sha256 == self.sha256 else None
