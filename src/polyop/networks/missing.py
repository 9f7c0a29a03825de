"""Find what a network needs and another framework lacks, and the line that supplies each of it."""

from __future__ import annotations

import ast
import dataclasses
from collections import Counter
from typing import Any

from ..core.errors import ArgumentValueError, PolyopError
from ..core.texts import did_you_mean
from ..providers.aten import aten
from . import foreign_operator, onnx_translated
from .corresponding import IGNORED, NO_ROW, ONNX, TARGETS, answer, row_of, table
from .corresponding_expression import TensorArgument
from .corresponding_shortened import literal
from .traced import Traced, Use, bound

EVERY = (*TARGETS, ONNX)
"""The frameworks and formats that a network can be moved to."""
THERE, MISSING, UNKNOWN = "there", "missing", "unknown"
_IN_PLACE = "PyTorch writes x in place: here the result takes its place, also in views of x"


@dataclasses.dataclass(frozen=True)
class Finding:
    """An operator of a network, and what stands for it elsewhere."""

    operator: str
    state: str
    """``there``, ``missing``, or ``unknown`` of an operator that the table does not have."""
    count: int
    places: list[str]
    """Where it is called: ``net.py:12 (encoder.0)``."""
    line: str
    """The line that supplies it, with the arguments of the first call."""
    reason: str
    """Why the framework has no function for it; for a function that there is, what differs."""
    skeleton: str = ""
    """Of an operator that is missing: the line that defines one's own, for programs without PyTorch."""
    example: str = ""
    """Of an operator that is missing: a loop kernel of polyop's examples that computes the like."""

    @property
    def label(self) -> str:
        """The word before the reason."""
        return "note" if self.state == THERE else "because"


def missing(traced: Traced, target: str) -> list[Finding]:
    """Return what a network calls, with what stands for it in ``target``; what is not there comes first.

    Calls of an operator with the same answer and reason are one finding.

    Raises ``ArgumentValueError`` for a target that is not known.
    """
    if target not in EVERY:
        hint = did_you_mean(target, EVERY) or f"it is one of {', '.join(EVERY)}"
        raise ArgumentValueError("target", "is not known", repr(target), hint=hint)
    grouped: dict[tuple[str, str, str], list[tuple[Use, str]]] = {}
    answers: dict[tuple[str, str], tuple[str, str, str]] = {}  # a network repeats its calls
    for use in traced.uses:
        call = (use.name, repr(use.arguments))
        if call not in answers:
            answers[call] = _found(use, target)
        state, line, reason = answers[call]
        grouped.setdefault((use.name, state, reason), []).append((use, line))
    findings = [_finding(*key, calls, target) for key, calls in grouped.items()]
    return sorted(findings, key=lambda one: (one.state == THERE, one.operator))


def as_json(traced: Traced, target: str, findings: list[Finding]) -> dict[str, Any]:
    """Return the findings as values of JSON."""
    return {
        "target": target,
        "traced": traced.way,
        "operators": [dataclasses.asdict(one) for one in findings],
    }


def _finding(name: str, state: str, reason: str, calls: list[tuple[Use, str]], target: str) -> Finding:
    places = Counter(_place(use) for use, _ in calls)
    written = [f"{place}, {count} times" if count > 1 else place for place, count in places.items()]
    if state == THERE or target == ONNX:
        return Finding(name, state, len(calls), written, calls[0][1], reason)
    own, kernel = foreign_operator.skeleton(name), foreign_operator.EXAMPLES.get(name, "")
    example = f"examples/{kernel}" if kernel else ""
    return Finding(name, state, len(calls), written, calls[0][1], reason, own, example)


def _place(use: Use) -> str:
    module = f"module {use.module}" if use.module else "?"
    return f"{use.place} ({use.module})" if use.place and use.module else use.place or module


def _found(use: Use, target: str) -> tuple[str, str, str]:
    """Return the state of a call (THERE, MISSING or UNKNOWN), the line to write, and the reason."""
    namespace, _, name = use.name.partition("::")
    if namespace == foreign_operator.FUNCTION:
        return (
            MISSING,
            foreign_operator.NOTHING,
            f"a function that is no operator of PyTorch, of {foreign_operator.of_function(name)}",
        )
    if target == ONNX:
        told = onnx_translated.asked(use.name, use.arguments)
        if told.is_there:
            return THERE, "torch.onnx.export(..., dynamo=True)", told.note
        return MISSING, onnx_translated.line(use.name), told.note
    if namespace not in ("aten", "higher_order"):
        return MISSING, foreign_operator.line(use.name), foreign_operator.reason(use.name)
    found = answer(name if namespace == "aten" else use.name, use.arguments, target)
    if found.expression is None:
        return UNKNOWN if found.reason == NO_ROW else MISSING, _by_name(use, target), found.reason
    row = row_of(name)
    in_place = [_IN_PLACE] if row and name not in table() else []
    return THERE, found.expression, "; ".join([*in_place, *filter(None, [found.note])])


def _by_name(use: Use, target: str) -> str:
    """Return the line that calls PyTorch's own operator in a framework, or NOTHING."""
    if use.name in foreign_operator.HIGHER_ORDER:
        return foreign_operator.HIGHER_ORDER[use.name]
    use = use._replace(name=foreign_operator.without_writing(use.name))
    short = use.name.removeprefix("aten::")
    try:
        aten(short)
    except PolyopError:
        return foreign_operator.NOTHING
    host = [] if any(map(_has_tensor, use.arguments.values())) else [f'host="{target}"']
    return f'polyop.aten("{short}")({", ".join(_written(use) + host)})'


def _written(use: Use) -> list[str]:
    """Return the arguments of a call as text, without trailing and keyword arguments at their default."""
    schema = foreign_operator.overload(use.name)._schema  # noqa: SLF001 - PyTorch has no public name
    plain = bound(schema, (), {}, lambda value: value)
    given = list(zip(schema.arguments, use.arguments.items(), strict=True))
    positional = [one for one in given if not one[0].kwarg_only]
    while positional and positional[-1][0].has_default_value() and _is_plain(positional[-1], plain):
        positional.pop()
    keywords = [one for one in given if one[0].kwarg_only and one[0].name not in IGNORED]
    named = [one for one in keywords if not _is_plain(one, plain)]
    texts = [_text(name, value) for _, (name, value) in positional]
    return texts + [f"{name}={_text(name, value)}" for _, (name, value) in named]


def _is_plain(argument: Any, plain: dict[str, Any]) -> bool:
    name, value = argument[1]
    return type(value) is type(plain[name]) and value == plain[name]


def _text(name: str, value: Any) -> str:
    """Return the name of a tensor, of tensors, or of a number of the run, and the text of anything else."""
    text = None if _has_tensor(value) else literal(value)
    return name if text is None else ast.unparse(text)


def _has_tensor(value: Any) -> bool:
    return isinstance(value, TensorArgument) or (isinstance(value, list) and any(map(_has_tensor, value)))
