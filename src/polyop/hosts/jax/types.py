"""Types of traced arrays (JAX's avals): their sharding, and the mesh axes over which they vary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.interpreters import ad
from jax.sharding import NamedSharding, PartitionSpec


def result_type(operand: Any, shape: Sequence[Any], dtype: Any, axes: Sequence[Any] = ()) -> Any:
    """Return the type of a result of this shape that varies over the same mesh axes as an operand.

    ``axes`` has the mesh axes along which each dimension is split; without it no dimension is.
    """
    mesh = operand.sharding.mesh
    spec = PartitionSpec(*(axes or (None,) * len(shape)))
    sharding = None if mesh.empty else NamedSharding(mesh, spec)
    return operand.update(shape=tuple(shape), dtype=dtype, weak_type=False, sharding=sharding)


def varying(value: Any) -> frozenset[Any]:
    """Return the mesh axes over which a value varies; only inside ``shard_map`` there are any."""
    kind = jax.typeof(value)
    manual = getattr(kind, "manual_axis_type", None)  # JAX 0.10; ``vma`` before it
    axes: frozenset[Any] = manual.varying if manual is not None else getattr(kind, "vma", frozenset())
    return axes


def unified(values: Sequence[Any]) -> Sequence[Any]:
    """Return the values, cast so that all vary over the union of their mesh axes."""
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
    """Return zeros of a type, with its sharding and varying axes."""
    return ad.instantiate_zeros(ad.Zero(kind))
