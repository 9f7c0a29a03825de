"""What JAX knows of an array while it traces: how it is split, and over which axes of a mesh it varies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.interpreters import ad
from jax.sharding import NamedSharding, PartitionSpec

from ...call.operator import Operator
from ...core.errors import HostError


def result_type(operand: Any, shape: Sequence[Any], dtype: Any, axes: Sequence[Any] = ()) -> Any:
    """Return the type of a result of this shape that varies over a mesh as an operand does.

    ``axes`` says along which axes of the mesh each dimension is split; none, where left out.
    """
    mesh = operand.sharding.mesh
    spec = PartitionSpec(*(axes or (None,) * len(shape)))
    sharding = None if mesh.empty else NamedSharding(mesh, spec)
    return operand.update(shape=tuple(shape), dtype=dtype, weak_type=False, sharding=sharding)


def varying(value: Any) -> frozenset[Any]:
    """Return the axes of a mesh over which a value varies, inside ``shard_map``."""
    kind = jax.typeof(value)
    found = getattr(kind, "manual_axis_type", None)  # JAX 0.10; ``vma`` before it
    axes: frozenset[Any] = found.varying if found is not None else getattr(kind, "vma", frozenset())
    return axes


def unified(values: Sequence[Any]) -> Sequence[Any]:
    """Return the values, all varying over the same axes of a mesh."""
    each = [varying(value) for value in values]
    union = frozenset().union(*each)
    if all(one == union for one in each):
        return values
    rows = zip(values, each, strict=True)
    return [x if one == union else _vary(x, tuple(union - one)) for x, one in rows]


def _vary(value: Any, axes: tuple[Any, ...]) -> Any:
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(value, axes, to="varying")
    return jax.lax.pvary(value, axes)  # JAX 0.7


def zeros(kind: Any) -> Any:
    """Return zeros of a type, split and varying as it says."""
    return ad.instantiate_zeros(ad.Zero(kind))


def explicit_axes(operator: Operator, operands: Sequence[Any], shape: Sequence[Any]) -> tuple[Any, ...]:
    """Return how an elementwise result of operands with explicit shardings is split.

    Raises ``HostError`` where two operands are split differently.
    """
    made: list[Any] = [None] * len(shape)
    for operand in operands:
        skip = len(shape) - len(operand.shape)
        for number, axes in enumerate(_axes(operand), skip):
            if axes is None:
                continue
            if made[number] not in (None, axes):
                rule = f"two operands are split along different axes in dimension {number}"
                seen = f"{made[number]} and {axes}"
                hint = "bring them together with jax.reshard"
                raise HostError(operator.name, rule, seen, where=operator.origin, hint=hint)
            made[number] = axes
    return tuple(made)


def is_split(operand: Any) -> bool:
    """Whether a type says that its dimensions are split along axes of a mesh."""
    return any(axes is not None for axes in _axes(operand))


def _axes(operand: Any) -> tuple[Any, ...]:
    return () if operand.sharding.mesh.empty else tuple(operand.sharding.spec)
