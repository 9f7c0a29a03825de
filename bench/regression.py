"""Find the rows that are slower than in an earlier run, beyond noise.

A row with a bar is slower when both hold:

* its 10 % quantile is above the earlier run's 90 % quantile: the two spreads do not overlap;
* its median is at least 5 % above the earlier one.

A row that was measured before and cannot be measured now is slower. Rows without a bar, new rows and removed
rows are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

MIN_GROWTH = 1.05
"""The least ratio of the medians; below it a change is noise, however narrow the spreads are."""

Line = Mapping[str, Any]
Key = tuple[str, str]


def read(path: Path) -> dict[str, Any]:
    """Return a run that ``report.write`` left. Raises ``SystemExit``, with a message, of any other file."""
    try:
        run: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError) as problem:
        raise SystemExit(f"bench: {path} is not a result of bench/run.py: {problem}") from None
    if not isinstance(run, dict) or not {"machine", "rows"} <= run.keys():
        raise SystemExit(f"bench: {path} is not a result of bench/run.py: it has no machine and rows")
    return run


def key(line: Line) -> Key:
    """Return what tells a row from the others: its name and its peer."""
    return line["name"], line["beside"]


def slower(old: Iterable[Line], new: Iterable[Line]) -> list[tuple[Line, Line]]:
    """Return the (old, new) lines of the rows that are slower."""
    before = {key(line): line for line in old}
    pairs = [(before[key(line)], line) for line in new if key(line) in before]
    return [pair for pair in pairs if _is_slower(*pair)]


def _is_slower(old: Line, new: Line) -> bool:
    if old["bar"] is None or "value" not in old:
        return False
    if "value" not in new:
        return True
    apart: bool = new["low"] > old["high"] and new["value"] >= MIN_GROWTH * old["value"]
    return apart


def describe(pairs: Sequence[tuple[Line, Line]], old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return lines of text on the slower rows. ``old`` and ``new`` are the machines of the runs."""
    text = []
    if old["processor"] != new["processor"]:
        text.append(f"the runs are of different processors: {old['processor']} and {new['processor']}")
    for before, after in pairs:
        result = f"{after['value']:.3g}" if "value" in after else after["verdict"]
        name = " beside ".join(part for part in key(after) if part)
        text.append(f"slower: {name}: {before['value']:.3g} -> {result} {after['unit']}")
    return [*text, f"{len(pairs)} rows with a bar are slower than before beyond noise"]
