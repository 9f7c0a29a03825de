"""Find the rows that are slower than in an earlier run, beyond noise.

The rule is that of ``polyop.bench.comparison``. Rows without a bar are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from polyop.bench import comparison
from polyop.bench.comparison import Key, Line, Pairs, key
from polyop.core.errors import ArgumentValueError

__all__ = ["Key", "confirmed", "describe", "key", "read", "slower", "with_bar"]
WHAT = "rows with a bar"


def read(path: Path) -> dict[str, Any]:
    """Return a run that ``report.write`` left. Raises ``SystemExit``, with a message, of any other file."""
    try:
        return comparison.read(path)
    except ArgumentValueError as problem:
        raise SystemExit(f"bench: {path} is not a result of bench/run.py: {problem}") from None


def with_bar(lines: Iterable[Line]) -> list[Line]:
    """Return the rows that have a bar."""
    return [line for line in lines if line["bar"] is not None]


def slower(old: Iterable[Line], new: Iterable[Line]) -> Pairs:
    """Return the (old, new) rows with a bar that are slower."""
    return comparison.slower(with_bar(old), with_bar(new))


confirmed = comparison.confirmed


def describe(pairs: Pairs, old: Any, new: Any) -> list[str]:
    """Return lines of text on the slower rows. ``old`` and ``new`` are the machines of the runs."""
    return comparison.describe(pairs, old, new, WHAT)
