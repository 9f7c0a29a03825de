"""Give an operator of loop kernels the rules that can be derived from its loops, or take them away."""

from __future__ import annotations

import dataclasses
from typing import Any

from ...call.operator import Operator
from ...call.rule import Rule
from ...kernels.base import LoopKernelBase


def with_derived(operator: Operator) -> Operator:
    """Return an operator of loop kernels with the gradient, the tangent and the batch that it lacks.

    If its author gave a gradient, only the batch is derived, whose gradient is the given one of each sample.
    A derived tangent would be that of another function.
    """
    loops = operator.kernels and all(isinstance(k, LoopKernelBase) for k in operator.kernels)
    if not loops or operator.schema.mutates:
        return operator
    from .batch import BatchRule  # here: an operator without loops does not load the compiler
    from .gradient import GradientRule
    from .placed import PlacedRule
    from .tangent import TangentRule

    operator = dataclasses.replace(operator, placed=operator.placed or PlacedRule(operator, with_derived))
    if operator.gradient is not None:
        alone = operator.batch is None and operator.jvp is None
        return dataclasses.replace(operator, batch=BatchRule(operator, with_derived)) if alone else operator
    return dataclasses.replace(
        operator,
        gradient=GradientRule(operator, with_derived),
        jvp=operator.jvp or TangentRule(operator, with_derived),
        batch=operator.batch or BatchRule(operator, with_derived),
    )


def without_derived(operator: Operator) -> Operator:
    """Return the operator with only the rules that its author gave it."""
    rules = {name: getattr(operator, name) for name in ("gradient", "jvp", "batch", "placed")}
    removed: Any = {name: None for name, rule in rules.items() if isinstance(rule, Rule) and rule.is_derived}
    return dataclasses.replace(operator, **removed)
