"""Sizes that a compiler traces as symbols.

A plan is chosen for the sizes that the traced call has, without a condition on them: which layout is cheapest
is no matter of correctness. What a plan relies on becomes a condition of the traced program.

What devices send each other for a halo, and where a slice lies, are numbers. PyTorch loses a condition that
fixes the size of the whole, as it keeps those of slices alone. So such a dimension is gathered.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any

from ....call.host import map_tensors
from ....call.operator import Operator
from ....core.errors import FallbackWarning, HostError
from ....core.spec import Spec
from ....sharding.plan import Plan
from ....sharding.rule import ShardingRule, sizes_along

_warned: set[str] = set()  # names of operators


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


def for_all_sizes(operator: Operator, rule: ShardingRule) -> ShardingRule:
    """Return the rule without strategies for one size alone; warns once of what is left out."""
    left_out = [one.name for one in rule.strategies if one.has_halo or one.placed]
    if left_out and operator.name not in _warned:
        _warned.add(operator.name)
        why = "its sizes are symbols of the traced program, and what devices send each other are numbers"
        text = f"{operator.name}: along {' and '.join(left_out)} each device computes the whole: {why}; "
        warnings.warn(FallbackWarning(f"{text}torch.compile(dynamic=False) splits it"), stacklevel=2)
    kept = tuple(one for one in rule.strategies if one.name not in left_out)
    return dataclasses.replace(rule, strategies=kept)


def add_conditions(plan: Plan, mesh: Sequence[int], inputs: Sequence[Spec], operator: Operator) -> None:
    """Make what the plan relies on conditions of the program that is traced.

    Along an axis with one device nothing is cut. Raises ``HostError`` for sizes for which the plan is wrong.
    """
    strategies = [strategy for strategy, count in zip(plan.strategies, mesh, strict=True) if count > 1]
    for strategy in strategies:
        if strategy.name:
            first, *others = sizes_along(strategy.inputs, inputs)
            if not first > 1 or not all(other == first for other in others):
                rule = f"the tensors that are split along {strategy.name} must have one size, above 1"
                raise HostError(operator.name, rule, [first, *others], where=operator.origin)
