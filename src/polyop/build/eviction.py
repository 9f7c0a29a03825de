"""How large the build cache may become, and how old what nobody uses."""

from __future__ import annotations

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
"""Bytes that each cache holds, as far as this process knows; counted anew when that is beyond the bound."""


class CacheLimits(NamedTuple):
    """Bytes that entries may take together, and seconds that one is kept unused; None for no bound."""

    size: float | None = 5.0 * (1 << 30)
    age: float | None = 90 * _DAY


def cache_limits() -> CacheLimits:
    """Return what POLYOP_CACHE_SIZE says, 5 GiB and 90 days where it says nothing.

    ``"2GiB"`` is another size (KiB, MiB and TiB are units too, a plain number is bytes), ``"2GiB,30d"``
    another age as well; ``"0"`` keeps what is in use alone, ``"none"`` has no bound. Raises
    ``CacheError`` for anything else.

    >>> from unittest import mock
    >>> with mock.patch.dict(os.environ, POLYOP_CACHE_SIZE="1.5GiB,30d"):
    ...     cache_limits()
    CacheLimits(size=1610612736.0, age=2592000.0)
    """
    written = os.environ.get(VARIABLE, "").strip()
    if not written:
        return CacheLimits()
    if written.lower() == "none":
        return CacheLimits(None, None)
    parts = re.fullmatch(_TEXT, written, re.IGNORECASE)
    if parts is None:
        hint = 'as in "2GiB", "500 MiB,30d", "0" (what is in use alone), "none" (no bound)'
        raise CacheError(VARIABLE, "must be a size, and may have days after it", repr(written), hint=hint)
    size = float(parts[1]) * _UNITS[parts[2].lower()]
    return CacheLimits(size, int(parts[3]) * _DAY if parts[3] else CacheLimits().age)


def evict(folder: Path, added: float) -> None:
    """Remove what is beyond the bound, the least recently used first; called when ``added`` bytes came.

    What a process uses stays, whatever its size.
    """
    limit = cache_limits()
    if limit == (None, None):
        return
    known = _sizes.get(folder)
    if known is not None and (limit.size is None or known + added <= limit.size):
        _sizes[folder] = known + added  # nothing grew too large; ages were looked at when it was counted
        return
    every = entries.entries(folder)
    total = float(sum(entry.size for entry in every))
    oldest = None if limit.age is None else time.time() - limit.age
    doomed = set()
    for entry in reversed(every):
        too_old = oldest is not None and entry.used < oldest
        if not too_old and (limit.size is None or total <= limit.size):
            break
        if not entry.in_use:
            doomed.add(entry.key)
            total -= entry.size
    if doomed:
        entries.remove(folder, doomed)
    entries.remove_leftovers(folder, oldest)
    _sizes[folder] = total
