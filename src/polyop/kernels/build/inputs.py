"""The files a compile has read: found in its depfile, and known again by content.

A file that has kept its size and both its times is taken as unchanged without reading it.
A path that would be found earlier by the compiler than a header it did read is recorded as
absent: a new file there makes another build, too.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

_WORD = r"(?:\\.|[^\s\\])+"
_SETTLED = 50_000_000
"""Nanoseconds: a file changed more recently than this could change again at the same time stamp."""


def parse_depfile(text: str) -> list[str]:
    r"""Return the prerequisites of a make rule as compilers write it.

    >>> parse_depfile("t: /a\\ b/k.c \\\n /usr/include/x.h\n")
    ['/a b/k.c', '/usr/include/x.h']
    """
    _, _, rest = text.replace("\\\n", " ").partition(":")
    return [re.sub(r"\\(.)", r"\1", word).replace("$$", "$") for word in re.findall(_WORD, rest)]


def digest(path: str | Path) -> str:
    """Return the SHA-256 of a file's bytes. Raises ``OSError``."""
    found = hashlib.sha256()
    with open(path, "rb") as file:  # noqa: PTH123 - thousands of headers, Path costs more than the read
        while chunk := file.read(1 << 20):
            found.update(chunk)
    return found.hexdigest()


@dataclass(frozen=True, slots=True)
class Input:
    """A file as it was when it was read. Times of 0 mean that only the content decides."""

    path: str
    size: int
    modified: int
    changed: int
    sha256: str

    @classmethod
    def of(cls, path: str) -> Input:
        """Return the file as it is now. Raises ``OSError``."""
        seen = os.stat(path)  # noqa: PTH116 - as above
        sha256 = digest(path)
        settled = time.time_ns() - max(seen.st_mtime_ns, seen.st_ctime_ns) > _SETTLED
        times = (seen.st_mtime_ns, seen.st_ctime_ns) if settled else (0, 0)
        return cls(path, seen.st_size, *times, sha256)

    def now(self) -> Input | None:
        """Return this, or the same content with its new times, or None when it has changed."""
        try:
            seen = os.stat(self.path)  # noqa: PTH116 - as above
            if seen.st_size != self.size:
                return None
            if (seen.st_mtime_ns, seen.st_ctime_ns) == (self.modified, self.changed):
                return self
            fresh = Input.of(self.path)
        except OSError:
            return None
        return fresh if fresh.sha256 == self.sha256 else None


def would_shadow(inputs: Iterable[str], search: Sequence[str]) -> list[str]:
    """Return the paths that do not exist and, if they did, would be found instead of an input.

    ``search`` holds the folders given with -I, in order. Where a whole folder is missing, the
    folder stands for all that could be in it.
    """
    roots = [root.rstrip("/") + "/" for root in dict.fromkeys(search)]
    missing: dict[str, bool] = {}

    def absent(path: str) -> bool:
        if path not in missing:
            missing[path] = not os.path.lexists(path)
        return missing[path]

    for path in inputs:
        position = next((i for i, root in enumerate(roots) if path.startswith(root)), len(roots))
        if position < len(roots):
            name = path[len(roots[position]) :]
        else:  # a folder of the compiler's own: what stands below the last "include" was asked for
            name = path.rpartition("/include/")[2] if "/include/" in path else path.rpartition("/")[2]
        for root in roots[:position]:
            if not absent(root + name.partition("/")[0]):
                absent(root + name)
    return [path for path, is_missing in missing.items() if is_missing]
