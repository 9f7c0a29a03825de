"""What a network needs that another framework does not have, and the line that supplies each of it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

from ..core.errors import ArgumentValueError, PolyopError
from ..core.nearest import did_you_mean
from . import onnx, origin
from .corresponding import TARGETS, answer
from .traced import Traced, Use

EVERY = (*TARGETS, "onnx")
"""The frameworks and formats that a network can be moved to."""


@dataclasses.dataclass(frozen=True)
class Finding:
    """An operator of a network, and what stands for it elsewhere."""

    operator: str
    count: int
    places: list[str]
    """Where it is called: ``net.py:12 (encoder.0)``."""
    is_missing: bool
    line: str
    """The line that supplies it."""
    reason: str
    """Why the framework has no function for it; for a function that there is, what differs."""


def missing(traced: Traced, target: str) -> list[Finding]:
    """Return what a network calls, with what stands for it in ``target``; what is missing comes first.

    An operator is listed once for each reason, and each line.

    Raises ``ArgumentValueError`` for a target that is not known.
    """
    if target not in EVERY:
        hint = did_you_mean(target, EVERY) or f"it is one of {', '.join(EVERY)}"
        raise ArgumentValueError("target", "is not known", repr(target), hint=hint)
    grouped: dict[tuple[str, bool, str], list[tuple[Use, str]]] = {}
    for use in traced.uses:
        is_missing, line, reason = _found(use, target)
        grouped.setdefault((use.name, is_missing, reason), []).append((use, line))
    findings = [_finding(*key, calls) for key, calls in grouped.items()]
    return sorted(findings, key=lambda one: (not one.is_missing, one.operator))


def _finding(name: str, is_missing: bool, reason: str, calls: list[tuple[Use, str]]) -> Finding:
    places = Counter(_place(use) for use, _ in calls)
    written = [f"{place} x {count}" if count > 1 else place for place, count in places.items()]
    line = calls[0][1]
    return Finding(name, len(calls), written, is_missing, line, reason)


def _place(use: Use) -> str:
    return f"{use.place} ({use.module})" if use.place and use.module else use.place or use.module or "?"


def _found(use: Use, target: str) -> tuple[bool, str, str]:
    """Return whether a call has nothing in the target, the line that supplies it, and why or what differs."""
    namespace, _, name = use.name.partition("::")
    if target == "onnx":
        if onnx.has(use.name):
            return False, "torch.onnx.export translates it", ""
        return True, onnx.line(use.name), "torch.onnx has no translation of it"
    if namespace not in ("aten", "higher_order"):
        return True, origin.line(use.name), origin.reason(use.name)
    found = answer(name if namespace == "aten" else use.name, use.arguments, target)
    if found.expression is not None:
        return False, found.expression, found.note
    return True, _by_name(use.name), found.reason


def _by_name(name: str) -> str:
    """Return the line that calls PyTorch's own operator, or how to begin one."""
    from ..providers.aten import aten

    short = name.removeprefix("aten::")
    try:
        aten(short)
    except PolyopError:
        return origin.NOTHING
    return f'polyop.aten("{short}")'


def as_json(traced: Traced, target: str, findings: list[Finding]) -> dict[str, Any]:
    """Return the findings as values of JSON."""
    return {
        "target": target,
        "traced": traced.way,
        "operators": [dataclasses.asdict(one) for one in findings],
    }
