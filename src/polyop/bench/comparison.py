"""Find what is slower than in an earlier run, beyond noise. ``polyop bench`` and ``make bench`` use it.

A row is slower when both hold:

* its 10 % quantile is above the earlier run's 90 % quantile: the two spreads do not overlap;
* its median is at least 5 % above the earlier one.

A row that was measured before and cannot be measured now is slower. New rows and removed rows are ignored.
What looks slower is measured twice more, and must be slower each time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.errors import ArgumentValueError

MIN_GROWTH = 1.05
"""The least ratio of the medians; below it a change is noise, however narrow the spreads are."""
REPEATS = 2
"""How often a row that looks slower is measured again."""

Line = Mapping[str, Any]
Key = tuple[str, str]
Pairs = list[tuple[Line, Line]]


def read(path: Path) -> dict[str, Any]:
    """Return a run from a JSON file; raises ``ArgumentValueError`` for any other file."""
    rule = "must be the JSON of an earlier run, with machine and rows"
    try:
        run: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise ArgumentValueError(str(path), rule, problem) from None
    if not isinstance(run, dict) or not {"machine", "rows"} <= run.keys():
        raise ArgumentValueError(str(path), rule, type(run).__name__)
    return run


def key(line: Line) -> Key:
    """Return what tells a row from the others: its name and its peer."""
    return line["name"], line["beside"]


def slower(old: Iterable[Line], new: Iterable[Line]) -> Pairs:
    """Return the (old, new) rows that are slower.

    >>> row = {"name": "f", "beside": "", "value": 1.0, "low": 0.9, "high": 1.1}
    >>> slower([row], [{**row, "value": 2.0, "low": 1.2}])[0][1]["value"]
    2.0
    >>> slower([row], [{**row, "value": 2.0, "low": 1.0}])
    []
    """
    before = {key(line): line for line in old}
    pairs = [(before[key(line)], line) for line in new if key(line) in before]
    return [pair for pair in pairs if _is_slower(*pair)]


def confirmed(old: Sequence[Line], new: Iterable[Line], again: Callable[[set[Key]], Iterable[Line]]) -> Pairs:
    """Return the rows that are slower each time; ``again`` measures those with the given keys once more.

    Another program on the machine makes a row slow once, not three times.
    """
    pairs = slower(old, new)
    for _ in range(REPEATS):
        keys = {key(after) for _, after in pairs}
        pairs = slower(old, [line for line in again(keys) if key(line) in keys]) if keys else []
    return pairs


def _is_slower(old: Line, new: Line) -> bool:
    if "value" not in old:
        return False
    if "value" not in new:
        return True
    apart: bool = new["low"] > old["high"] and new["value"] >= MIN_GROWTH * old["value"]
    return apart


def describe(pairs: Pairs, old: Mapping[str, Any], new: Mapping[str, Any], what: str = "rows") -> list[str]:
    """Return lines of text on the slower rows. ``old`` and ``new`` are the machines of the runs."""
    text = []
    if old["processor"] != new["processor"]:
        text.append(f"the runs are of different processors: {old['processor']} and {new['processor']}")
    for before, after in pairs:
        result = f"{after['value']:.3g}" if "value" in after else after["verdict"]
        name = " beside ".join(part for part in key(after) if part)
        text.append(f"slower: {name}: {before['value']:.3g} -> {result} {after['unit']}")
    return [*text, f"{len(pairs)} {what} are slower than before beyond noise"]
