"""Sizes that a compiler traces as symbols.

A plan is chosen for the sizes that the traced call has, without a condition on them: which layout is cheapest
is no matter of correctness. What a plan relies on becomes a condition of the traced program. A halo needs
numbers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from ....call.host import map_tensors
from ....call.operator import Operator
from ....core.errors import HostError
from ....core.spec import Spec
from ....sharding.plan import Plan
from ....sharding.rule import sizes_along


def is_symbolic(specs: Sequence[Spec]) -> bool:
    """Whether a size is a symbol."""
    return any(type(size) is not int for spec in specs for size in spec.shape)


def with_numbers(operator: Operator, arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Return arguments with specs whose sizes are numbers: those of the traced call."""

    def numbered(name: str, spec: Spec, argument: Any) -> Spec:
        del name, argument
        return dataclasses.replace(spec, shape=tuple(map(_number, spec.shape)))

    return map_tensors(operator, arguments, numbered)


def _number(size: Any) -> int:
    hint = getattr(getattr(size, "node", None), "hint", None)
    return int(size if hint is None else hint)  # int() of a symbol is a condition of the program


def add_conditions(plan: Plan, mesh: Sequence[int], inputs: Sequence[Spec], operator: Operator) -> None:
    """Make what the plan relies on conditions of the program that is traced.

    Along an axis with one device nothing is cut. Raises ``HostError`` for sizes for which the plan is wrong.
    """
    strategies = [strategy for strategy, count in zip(plan.strategies, mesh, strict=True) if count > 1]
    for strategy in strategies:
        if strategy.has_halo or strategy.placed:
            for spec in inputs:
                tuple(map(int, spec.shape))
    for strategy in strategies:
        if strategy.name:
            first, *others = sizes_along(strategy.inputs, inputs)
            if not first > 1 or not all(other == first for other in others):
                rule = f"the tensors that are split along {strategy.name} must have one size, above 1"
                raise HostError(operator.name, rule, [first, *others], where=operator.origin)
