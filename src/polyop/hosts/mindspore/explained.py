"""Say for ``polyop explain`` whether gradients in graphs run on NumPy arrays.

Before a graph was compiled, the rule is tried with float32 tensors of several numbers of dimensions.
"""

from __future__ import annotations

from typing import Any

import mindspore

from ...call.operator import Operator
from ...call.rule import Rule
from ...core.schema import MISSING, Argument
from .bprop import reason_of
from .launch import Launch
from .readable import unread_because

_SIZES = ((2, 2), (2,), (2, 2, 2, 2), ())
_SAMPLES = {"int": 1, "float": 1.0, "bool": True, "str": "", "SymInt": 1, "Scalar": 1.0, "number": 1.0}


def fallback(bound: Any) -> str:
    """Return in words that the rule runs on NumPy arrays in graphs, and why; "" if MindSpore reads it."""
    operator: Operator = bound.operator
    if operator.gradient is None or isinstance(operator.gradient, Rule) or operator.schema.mutates:
        return ""
    reason = unread_because(operator)
    tried = "" if reason else ", tried with float32 tensors"
    reason = reason or _found(bound)
    text = "fallback in graphs: the gradient rule runs on NumPy arrays; MindSpore's compiler cannot read it"
    return f"{text}{tried}: {reason}" if reason else ""


def _found(bound: Any) -> str:
    """Return the reason that all tries have; "" if one of them succeeds, or nothing can be tried."""
    arguments = tuple(map(_sample, bound.schema.arguments))
    if bound.by_signature or bound.schema.returns_list or MISSING in arguments:
        return ""
    launch = Launch.of(bound, arguments)
    reasons = ""
    for shape in _SIZES:
        count = launch.inputs + launch.output_count
        reasons = reason_of(launch, [shape] * count, [mindspore.float32] * count)
        if not reasons:
            return ""
    return reasons


def _sample(argument: Argument) -> Any:
    if argument.type.is_tensor:
        return (True, True) if argument.type.is_list else True
    if argument.default is not MISSING:
        return argument.default
    return MISSING if argument.type.suffixes else _SAMPLES.get(argument.type.base, MISSING)
