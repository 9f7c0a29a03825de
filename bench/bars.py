"""Decide whether a row keeps its bar, with the table of known misses (bench/known_misses.py).

A row misses its bar if its 10 % quantile is above it: nine of ten rounds took longer. If only the median is
above the bar, the miss is noise.

    low <= bar                                        ok
    low >  bar, not in the table                      MISSED
    low >  bar, in the table, low <= 1.05 x listed    known miss
    low >  bar, in the table, low >  1.05 x listed    WORSE

MISSED and WORSE are errors, and so is a row with a bar that failed. A row whose peer is not on this machine
is no error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MARGIN = 1.05
"""The ratio to the listed value that a known miss may have; above it the row is worse."""

Line = Mapping[str, Any]


@dataclass(frozen=True)
class KnownMiss:
    """A row that misses its bar, and why. ``ratio`` is the median when it was listed, in the row's unit."""

    name: str
    beside: str
    ratio: float
    reason: str


def verdict(line: Line, known: Iterable[KnownMiss]) -> str:
    """Return the last column of a row that was measured; empty for a row without a bar."""
    if line["bar"] is None:
        return ""
    if line["low"] <= line["bar"]:
        return "ok"
    listed = _listed(line, known)
    if listed is None:
        return "MISSED"
    return "WORSE" if line["low"] > MARGIN * listed.ratio else "known miss"


def describe(lines: Sequence[Line], known: Sequence[KnownMiss]) -> list[str]:
    """Return lines of text on each missed bar, and on each known miss that should leave the table."""
    text = []
    for line in lines:
        listed = _listed(line, known)
        if line["verdict"] == "MISSED":
            text.append(f"missed: {_result(line)}, and the bar is {_amount(line['bar'], line)}")
        elif listed and line["verdict"] == "WORSE":
            text.append(f"worse than listed: {_result(line)}, listed {_amount(listed.ratio, line)}")
        elif listed and line["verdict"] == "known miss":
            text.append(f"known miss: {_result(line)}, listed {_amount(listed.ratio, line)}: {listed.reason}")
        elif listed and line["verdict"] == "ok":
            text.append(f"no longer missed: {_result(line)}; take it out of bench/known_misses.py")
        elif is_error(line):
            text.append(f"{_name(line)}: {line['verdict']}")
    return text


def is_error(line: Line) -> bool:
    """Return whether this row makes the run fail."""
    failed = line["bar"] is not None and line["verdict"].startswith("failed")
    return failed or line["verdict"] in ("MISSED", "WORSE")


def without_rows(lines: Iterable[Line], known: Iterable[KnownMiss]) -> list[str]:
    """Return lines of text on the known misses that a whole run has no row for."""
    names = {key for line in lines for key in _keys(line)}
    return [f"listed, and no row of this run: {miss.name}" for miss in known if _key(miss) not in names]


def _listed(line: Line, known: Iterable[KnownMiss]) -> KnownMiss | None:
    listed = {_key(miss): miss for miss in known}
    return next((listed[key] for key in _keys(line) if key in listed), None)


def _keys(line: Line) -> list[tuple[str, str]]:
    """Return what a row may be listed as. On a machine with AVX2 only, all titles end in ``, avx2``."""
    name, beside = _key(line)
    return [(name, beside), (name.removesuffix(", avx2"), beside)]


def _key(row: Line | KnownMiss) -> tuple[str, str]:
    return (row.name, row.beside) if isinstance(row, KnownMiss) else (row["name"], row["beside"])


def _name(line: Line) -> str:
    return " beside ".join(part for part in _key(line) if part)


def _result(line: Line) -> str:
    return f"{_name(line)}: {_amount(line['value'], line)} (10 %: {_amount(line['low'], line)})"


def _amount(value: float, line: Line) -> str:
    return f"{value:.3g} {line['unit']}"
