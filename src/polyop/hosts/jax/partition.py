"""Operators on sharded arrays: one call per shard along parallel dimensions, else an error.

XLA's partitioner asks here how a call is split. For a plain custom call it would silently gather
all operands on every device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import NamedSharding, PartitionSpec

from ...call.operator import Operator
from ...core.errors import HostError
from .dimensions import dimensions_of
from .emit import emit
from .site import Site
from .types import explicit_axes, is_split


def lower(site: Site, flat: Sequence[Any]) -> tuple[Any, ...]:
    """Return the outputs of a call, lowered to custom calls, for any number of devices."""
    if jax.device_count() == 1:
        return emit(site, *flat)
    dimensions = dimensions_of(site, flat)

    def partition(mesh: Any, operands: Any, results: Any) -> Any:
        first = results[0]
        if dimensions is not None and isinstance(first.sharding, NamedSharding):
            axes = axes_by_name(dimensions.outputs[:1], results[:1])
            shardings = [NamedSharding(mesh, spec) for spec in dimensions.specs(axes)]
        elif dimensions is not None and dimensions.are_equal:  # the mesh is partly manual
            shardings = [first.sharding] * (len(operands) + len(results))
        else:
            for value in operands:
                if not value.sharding.is_fully_replicated:
                    raise sharding_error(site.operator, value.sharding)
            shardings = [value.sharding for value in (*operands, *results)]
        count = len(operands)
        return (
            mesh,
            lambda *shards: emit(site.base, *shards),
            tuple(shardings[count:]),
            tuple(shardings[:count]),
        )

    def infer_shardings(mesh: Any, operands: Any, results: Any) -> tuple[Any, ...]:
        """Return the shardings of the results, for GSPMD (JAX's partitioner before Shardy)."""
        named = all(isinstance(value.sharding, NamedSharding) for value in operands)
        if dimensions is None or not named:
            return _as_operands(mesh, operands, results)
        specs = dimensions.specs(axes_by_name(dimensions.inputs, operands))
        return tuple(NamedSharding(mesh, spec) for spec in specs[len(operands) :])

    wrapped = custom_partitioning(lambda *operands: emit(site, *operands))
    wrapped.def_partition(
        partition,
        infer_sharding_from_operands=None if jax.config.jax_use_shardy_partitioner else infer_shardings,
        sharding_rule=None if dimensions is None else dimensions.rule(),
        need_replication_factors=() if dimensions is None else dimensions.replicated(),
    )
    return tuple(wrapped(*flat))


def axes_by_name(names: Sequence[Sequence[str]], values: Sequence[Any]) -> dict[str, Any]:
    """Return the mesh axes of each dimension that is split; the first tensor that has it wins."""
    axes: dict[str, Any] = {}
    for dimensions, value in zip(names, values, strict=True):
        for name, split in zip(dimensions, value.sharding.spec, strict=False):
            if split is not None:
                axes.setdefault(name, split)
    return axes


def need_one_device(context: Any, site: Site) -> None:
    """Raise ``HostError`` in a program that XLA splits over devices.

    The partitioner never asks how a call without outputs is split.
    """
    axes = context.module_context.axis_context
    devices = getattr(axes, "num_devices", None) or 1
    manual = getattr(axes, "manual_axes", None)
    if devices > 1 or (manual is not None and set(manual) != set(axes.mesh.axis_names)):
        rule = "has no outputs, and the program runs on several devices"
        hint = "call it inside jax.shard_map, over all axes of the mesh: it runs once per shard"
        raise HostError(site.operator.name, rule, where=site.operator.origin, hint=hint)


def _as_operands(mesh: Any, operands: Any, results: Any) -> tuple[Any, ...]:
    """Return the shardings of the results, for GSPMD (JAX's partitioner before Shardy)."""
    full = [x.sharding for x in operands if x.shape == results[0].shape]
    return (full[0] if full else NamedSharding(mesh, PartitionSpec()),) * len(results)


def needs_devices(*primitives: Any) -> None:
    """Tell JAX that lowering these primitives needs the devices, as custom partitioning does."""
    from jax._src import dispatch

    dispatch.prim_requires_devices_during_lowering.update(primitives)


def result_axes(site: Site, flat: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return the mesh axes along which each dimension of each output is split, on an explicit mesh.

    An empty list means that no operand is split. Raises ``HostError`` if one is split along a dimension
    that the operator needs the whole of.
    """
    if not any(map(is_split, flat)):
        return []
    dimensions = dimensions_of(site, flat)
    if dimensions is None:
        raise sharding_error(site.operator, next(filter(is_split, flat)).sharding)
    axes = explicit_axes(site.operator, flat, dimensions.inputs)
    if not dimensions.parallel.issuperset(axes):
        raise sharding_error(site.operator, next(filter(is_split, flat)).sharding)
    return [tuple(axes.get(name) for name in names) for names in dimensions.outputs]


def sharding_error(operator: Operator, sharding: Any) -> HostError:
    """Return the error for a sharded operand of an operator that needs the whole of it."""
    hint = (
        "call it inside jax.shard_map, which runs it once per shard, or give it the whole array "
        '(jax.device_put, jax.lax.with_sharding_constraint); batch="elementwise" declares that an element '
        "of the outputs depends on the same element of the inputs only, and dims= with parallel= which "
        "dimensions may be split"
    )
    rule = "an operand is sharded, and nothing says how the operator is split"
    seen = getattr(sharding, "spec", sharding)
    return HostError(operator.name, rule, seen, where=operator.origin, hint=hint)
