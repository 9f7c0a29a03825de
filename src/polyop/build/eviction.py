"""Keep the build cache within a size and an age: evict the least recently used entries.

POLYOP_CACHE_SIZE sets the limits. After each build a process checks the size. Once a day, for all processes,
it also checks the ages and removes what has no record: that reads the record of each entry.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from pathlib import Path
from typing import NamedTuple

from ..core.errors import CacheError
from . import entries

VARIABLE = "POLYOP_CACHE_SIZE"
_DAY = 86400.0
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_TEXT = r"(\d{1,15}(?:\.\d{0,9})?)\s*([kmgt]?)(?:i?b)?\s*(?:,\s*(\d{1,6})\s*d(?:ays?)?)?"
_sizes: dict[Path, float] = {}
"""Folder of a cache -> its size in bytes, as last measured plus what this process has built since."""


class CacheLimits(NamedTuple):
    """Total size of the entries in bytes, and seconds that an unused entry is kept. None means no limit."""

    size: float | None = 5.0 * (1 << 30)
    age: float | None = 90 * _DAY


def cache_limits() -> CacheLimits:
    """Return the limits that POLYOP_CACHE_SIZE sets; 5 GiB and 90 days by default.

    ``"2GiB"`` sets the size: the units are KiB, MiB, GiB and TiB, and a number without a unit is bytes.
    ``"2GiB,30d"`` sets the age too. ``"0"`` keeps only entries in use. ``"none"`` removes both limits.
    Raises ``CacheError`` for any other text.

    >>> from unittest import mock
    >>> with mock.patch.dict(os.environ, POLYOP_CACHE_SIZE="1.5GiB,30d"):
    ...     cache_limits()
    CacheLimits(size=1610612736.0, age=2592000.0)
    """
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return CacheLimits()
    if text.lower() == "none":
        return CacheLimits(None, None)
    parts = re.fullmatch(_TEXT, text, re.IGNORECASE)
    if parts is None:
        hint = 'as in "2GiB", "500 MiB,30d", "0" (what is in use alone), "none" (no bound)'
        raise CacheError(VARIABLE, "must be a size, and may have days after it", repr(text), hint=hint)
    size = float(parts[1]) * _UNITS[parts[2].lower()]
    return CacheLimits(size, int(parts[3]) * _DAY if parts[3] else CacheLimits().age)


def evict(folder: Path, added: float) -> None:
    """Remove entries beyond the limits, least recently used first, after ``added`` bytes were added.

    An entry that a process uses is never removed.
    """
    limits = cache_limits()
    if limits == (None, None):
        return
    size = _size_of(folder, added)
    if size is not None and (limits.size is None or size <= limits.size):
        _sizes[folder] = size
        return
    all_entries = entries.entries(folder)
    total = float(sum(entry.size for entry in all_entries))
    oldest_use = None if limits.age is None else time.time() - limits.age
    evicted = set()
    for entry in reversed(all_entries):
        too_old = oldest_use is not None and entry.used < oldest_use
        if not too_old and (limits.size is None or total <= limits.size):
            break
        if not entry.in_use:
            evicted.add(entry.key)
            total -= entry.size
    if evicted:
        entries.remove(folder, evicted)
    entries.remove_leftovers(folder, oldest_use)
    _sizes[folder] = total
    (folder / entries.AGES_CHECKED).touch(0o644)


def _size_of(folder: Path, added: float) -> float | None:
    """Return the size of a cache, to which ``added`` bytes were just added; None if a check of ages is due.

    Files of entries without a record count too, until a check of ages removes them.
    """
    with contextlib.suppress(OSError):
        age = time.time() - (folder / entries.AGES_CHECKED).stat().st_mtime
        if 0 <= age < _DAY:
            known = _sizes.get(folder)
            if known is not None:
                return known + added
            return float(sum(file.stat().st_size for file in (folder / "entries").glob("*/*")))
    return None
