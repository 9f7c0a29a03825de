"""Print what was tried as plain text, and as data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ..bench.as_text import time_text
from ..core.texts import aligned
from ..loops.library.tuned import SAME_BITS
from .search import MIN_GAIN, OUTCOMES, Outcome, Tried

HEAD = ("default / it", "median", "model", "values", "schedule")
SHOWN = 12
"""How many of the measured schedules are listed, the fastest first."""


def table(outcome: Outcome) -> Iterator[str]:
    """Yield the lines of one search: what was tried, the fastest ones, and the choice."""
    subject = outcome.subject
    yield f"{subject.bound.name} {subject.inputs}"
    tried = f"{len(outcome.tried)} of {outcome.size} schedules tried in {outcome.seconds:.0f} s"
    yield f"{tried}, {outcome.count('measured')} measured; default {time_text(outcome.default_seconds)}"
    for word, why in OUTCOMES.items():
        if outcome.count(word):
            yield f"  {outcome.count(word):4} {why}"
    yield ""
    measured = sorted((t for t in outcome.tried if t.ratio is not None), key=lambda t: t.ratio or 0.0)
    if measured:
        yield from aligned([HEAD, *(_cells(one, outcome) for one in measured[:SHOWN])])
    if len(measured) > SHOWN:
        yield f"and {len(measured) - SHOWN} that are slower"
    yield from _choice(outcome)


def _cells(tried: Tried, outcome: Outcome) -> tuple[str, ...]:
    assert tried.ratio is not None
    values = "same" if tried.values == SAME_BITS else "sums"
    model = f"{tried.cost / outcome.default_cost:.2f}"
    seconds = "" if tried.seconds is None else time_text(tried.seconds)
    return (f"{1 / tried.ratio:.2f} x", seconds, model, values, str(tried.schedule))


def _choice(outcome: Outcome) -> Iterator[str]:
    if outcome.best is None:
        yield f"the default is the best, and nothing is kept: {_why_default(outcome)}"
        return
    median, low, high = outcome.gain
    yield f"the best is {median:.2f} times as fast as the default (10 % - 90 %: {low:.2f} - {high:.2f})"
    yield f"schedule={outcome.best.schedule}"
    yield f"values: {outcome.best.values}"


def _why_default(outcome: Outcome) -> str:
    gains = [1 / one.ratio for one in outcome.tried if one.ratio is not None]
    if not gains:
        return "no other schedule was measured"
    fastest = f"of the {len(gains)} that were measured, the fastest is {max(gains):.2f} times as fast"
    if max(gains) < MIN_GAIN:
        return f"{fastest}, and {MIN_GAIN} times is the least that is kept"
    return f"{fastest} in the median, but not beyond noise"


def data(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as plain data."""
    best = outcome.best
    return {
        "operator": outcome.subject.bound.name,
        "inputs": outcome.subject.inputs,
        "schedules": outcome.size,
        "seconds": outcome.seconds,
        "default_seconds": outcome.default_seconds,
        "best": None if best is None else str(best.schedule),
        "gain": dict(zip(("median", "low", "high"), outcome.gain, strict=True)),
        "values": SAME_BITS if best is None else best.values,
        "counts": {word: outcome.count(word) for word in OUTCOMES},
        "tried": [
            {
                "schedule": str(one.schedule),
                "outcome": one.outcome,
                "cost": None if math.isnan(one.cost) else one.cost,
                "gain": None if one.ratio is None else 1 / one.ratio,
                "values": one.values,
            }
            for one in outcome.tried
        ],
    }
