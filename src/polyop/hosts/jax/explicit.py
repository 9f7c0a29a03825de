"""Calls on meshes with explicit axes: how results are split follows from the types of the operands.

Nothing is gathered there. Along a dimension that is combined, ``sum="i"``, the results are whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.errors import HostError
from ...sharding.placement import Shard
from ...sharding.rule import ShardingRule
from .layout import axis_names, operand_name, sharding_error
from .partition import on_mesh, rule_of
from .site import Site


def result_axes(site: Site, flat: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return the mesh axes along which each dimension of each output is split, on an explicit mesh.

    An empty list means that no operand is split. Raises ``HostError`` if one is split along a dimension that
    the operator needs the whole of, or if operands are split differently.
    """
    if not any(map(_is_split, flat)):
        return []
    rule = on_mesh(rule_of(site, flat), flat[0].sharding.mesh)
    axes = _axes_by_dimension(site, rule, flat)
    splits = [strategy for strategy in rule.splits if strategy.name in axes]
    return [
        tuple(
            next((axes[strategy.name] for strategy in splits if strategy.outputs[number] == Shard(dim)), None)
            for dim in range(len(spec.shape))
        )
        for number, spec in enumerate(rule.outputs)
    ]


def _axes_by_dimension(site: Site, rule: ShardingRule, flat: Sequence[Any]) -> dict[str, tuple[str, ...]]:
    """Return the mesh axes of each dimension that is split in an operand."""
    axes: dict[str, tuple[str, ...]] = {}
    first: dict[str, int] = {}
    for number, operand in enumerate(flat):
        for dim, split in enumerate(_spec(operand)):
            if not axis_names(split):
                continue
            name = next((s.name for s in rule.splits if s.inputs[number] == Shard(dim)), None)
            if name is None:
                raise sharding_error(site, number, operand.sharding, dim)
            if axes.setdefault(name, axis_names(split)) != axis_names(split):
                names = f"{operand_name(site, first[name])} and {operand_name(site, number)}"
                rule_text = f"{names} are split along different axes in dimension {name}"
                raise _disagreement(site, rule_text, axes[name], axis_names(split))
            first.setdefault(name, number)
            for other, names_of_other in axes.items():
                if other != name and {*names_of_other} & {*axes[name]}:
                    rule_text = f"dimensions {other} and {name} are split along one axis"
                    raise _disagreement(site, rule_text, names_of_other, axes[name])
    return axes


def _disagreement(site: Site, rule: str, one: tuple[str, ...], other: tuple[str, ...]) -> HostError:
    hint = "bring the operands together with jax.reshard"
    seen = f"{', '.join(one)} and {', '.join(other)}"
    return HostError(site.operator.name, rule, seen, where=site.operator.origin, hint=hint)


def _is_split(operand: Any) -> bool:
    return any(axis_names(split) for split in _spec(operand))


def _spec(operand: Any) -> tuple[Any, ...]:
    return () if operand.sharding.mesh.empty else tuple(operand.sharding.spec)
