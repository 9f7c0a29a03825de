"""Operators on sharded arrays: one call per shard if the operator is elementwise, else an error.

XLA's partitioner asks here how a call is split. For a plain custom call it would silently gather
all operands on every device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import NamedSharding, PartitionSpec

from ...call.operator import Operator
from ...core.errors import HostError
from .emit import emit
from .site import Site
from .types import explicit_axes, is_split

Shapes = Sequence[tuple[int, ...]]


def lower(site: Site, flat: Sequence[Any]) -> tuple[Any, ...]:
    """Return the outputs of a call, lowered to custom calls, for any number of devices."""
    if jax.device_count() == 1:
        return emit(site, *flat)
    elementwise = is_elementwise(site, flat)

    def partition(mesh: Any, operands: Any, results: Any) -> Any:
        first = results[0]
        if elementwise and isinstance(first.sharding, NamedSharding):
            shardings = [NamedSharding(mesh, spec) for spec in specs_like(first, (*operands, *results))]
        elif elementwise and all(x.shape == first.shape for x in operands):  # the mesh is partly manual
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

    wrapped = custom_partitioning(lambda *operands: emit(site, *operands))
    rule = None
    if elementwise:
        rule = sharding_rule([x.shape for x in flat], [x.shape for x in site.outputs(flat)])
    wrapped.def_partition(
        partition,
        infer_sharding_from_operands=None if jax.config.jax_use_shardy_partitioner else _as_operands,
        sharding_rule=rule,
    )
    return tuple(wrapped(*flat))


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


def result_axes(site: Site, flat: Sequence[Any]) -> tuple[Any, ...]:
    """Return the mesh axes along which each dimension of the outputs is split, on an explicit mesh.

    An empty tuple means that no operand is split. Raises ``HostError`` if one is, and the operator
    needs the whole of it.
    """
    if not any(map(is_split, flat)):
        return ()
    if is_elementwise(site, flat):
        return explicit_axes(site.operator, flat, site.outputs(flat)[0].shape)
    raise sharding_error(site.operator, next(filter(is_split, flat)).sharding)


def is_elementwise(site: Site, flat: Sequence[Any]) -> bool:
    """Whether an element of the outputs depends on the same element of the operands only."""
    if site.operator.batch != "elementwise":
        return False
    shapes = [tuple(x.shape) for x in flat]
    try:
        whole = np.broadcast_shapes(*shapes)
    except (TypeError, ValueError):  # symbolic sizes, or shapes that do not broadcast
        return False
    return all(tuple(output.shape) == whole for output in site.outputs(flat))


def sharding_error(operator: Operator, sharding: Any) -> HostError:
    """Return the error for a sharded operand of an operator that needs the whole of it."""
    hint = (
        "call it inside jax.shard_map, which runs it once per shard, or give it the whole array "
        '(jax.device_put, jax.lax.with_sharding_constraint); batch="elementwise" declares that an element '
        "of the outputs depends on the same element of the inputs only"
    )
    rule = "an operand is sharded, and nothing says how the operator is split"
    seen = getattr(sharding, "spec", sharding)
    return HostError(operator.name, rule, seen, where=operator.origin, hint=hint)


def specs_like(first: Any, values: Sequence[Any]) -> list[PartitionSpec]:
    """Return how each value is split to match the first output, with dimensions aligned at the end."""
    spec = (*first.sharding.spec, *(None,) * (len(first.shape) - len(first.sharding.spec)))
    specs = []
    for value in values:
        skip = len(first.shape) - len(value.shape)
        rows = zip(value.shape, first.shape[skip:], spec[skip:], strict=True)
        specs.append(PartitionSpec(*(axes if size == full else None for size, full, axes in rows)))
    return specs


def sharding_rule(inputs: Shapes, outputs: Shapes) -> str:
    """Return Shardy's rule of an elementwise call: a factor per dimension, another if it is broadcast.

    >>> sharding_rule([(2, 3), (3,), (2, 1)], [(2, 3)])
    'd0 d1, d1, d0 b0 -> d0 d1'
    """
    whole, broadcast = outputs[0], 0

    def names(shape: tuple[int, ...]) -> str:
        nonlocal broadcast
        words = []
        for number, size in enumerate(shape, len(whole) - len(shape)):
            same = size == whole[number]
            words.append(f"d{number}" if same else f"b{broadcast}")
            broadcast += not same
        return " ".join(words)

    return f"{', '.join(map(names, inputs))} -> {', '.join(map(names, outputs))}"
