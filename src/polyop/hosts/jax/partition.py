"""Operators on sharded arrays: XLA's partitioner asks here how a call is split over the devices of a mesh.

For a plain custom call it would silently gather all operands on every device. Shardy, which propagates
shardings, gets a call's sharding rule in its own notation:

    dims="b i, i o -> b o", parallel="b", sum="i"     d0 d1, d1 r3 -> d0 r5
                                                      reduction d1, replicated r3 r5

Axes with one name are split alike. An axis that has to be whole has a name of its own. Shardy enforces
neither reductions nor replication: the partitioner does.
"""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import NamedSharding, PartitionSpec

from ...call.host import specs
from ...core.errors import FallbackWarning, HostError
from ...core.spec import Spec
from ...sharding.of_call import sharding_rule
from ...sharding.placement import Partial, Shard
from ...sharding.plan import plan
from ...sharding.rule import AxisStrategy, ShardingRule, replicated
from . import tensors
from .emit import emit
from .layout import Layout, sharding_error
from .partly_manual import PartlyManual
from .sharded_call import ShardedCall
from .site import Site

_MAX_PLACES = 16
"""On how many devices slices may have to know their place: a program has one call for each place."""


def rule_of(site: Site, flat: Sequence[Any]) -> ShardingRule:
    """Return in which ways a call is split; a call with symbolic sizes is not."""
    outputs = tuple(site.outputs(flat))
    inputs = tuple(tensors.spec(x) for x in flat)
    strategies = [replicated(len(inputs), len(outputs))]
    if all(isinstance(size, int) for x in (*inputs, *outputs) for size in x.shape):
        arguments = specs(tensors, site.operator, site.unflatten(flat))
        written = tuple(site.kernel_outputs(flat))
        fresh = written[: len(outputs) - len(site.aliases(flat))]
        splits = sharding_rule(site.operator, arguments, fresh).splits
        strategies += [one for one in splits if not _adds_narrow(one, written, outputs)]
    return ShardingRule(site.operator.name, inputs, outputs, tuple(strategies))


def _adds_narrow(strategy: AxisStrategy, written: Sequence[Spec], outputs: Sequence[Spec]) -> bool:
    """Whether devices would add integers of fewer bits than the kernel's: nobody would check their sum."""
    rows = zip(strategy.outputs, written, outputs, strict=False)
    return any(
        isinstance(placement, Partial)
        and placement.op == "sum"
        and wide != spec
        and spec.dtype.kind in ("int", "uint")
        for placement, wide, spec in rows
    )


def on_mesh(rule: ShardingRule, mesh: Any) -> ShardingRule:
    """Return the rule on a mesh: slices do not know their place where there are many devices."""
    if mesh.size <= _MAX_PLACES:
        return rule
    strategies = tuple(strategy for strategy in rule.strategies if not strategy.placed)
    return replace(rule, strategies=strategies)


def lower(site: Site, flat: Sequence[Any], meshes: PartlyManual | None) -> tuple[Any, ...]:
    """Return the outputs of a call, lowered for a program that XLA splits over devices.

    ``meshes`` are those of a program that XLA splits along one axis, while others are manual.
    """
    rule = rule_of(site, flat)
    wrapped = custom_partitioning(lambda *operands: emit(site, *operands))
    partition = functools.partial(_partition, site, rule, meshes)
    if not jax.config.jax_use_shardy_partitioner:
        infer = functools.partial(_result_shardings, site, rule)
        wrapped.def_partition(partition, infer_sharding_from_operands=infer)
    elif rule.splits:
        wrapped.def_partition(partition, **shardy_rule(rule)._asdict())
    else:
        wrapped.def_partition(partition)
    return tuple(wrapped(*flat))


def _partition(
    site: Site, rule: ShardingRule, meshes: PartlyManual | None, mesh: Any, operands: Any, results: Any
) -> Any:
    """Return what ``custom_partitioning`` needs: the mesh, the program of a device, and the shardings."""
    whole = mesh
    if meshes is not None:
        operands, results = (tuple(map(meshes.named, values)) for values in (operands, results))
        mesh, whole = meshes.group, meshes.whole
    if not _are_named((*operands, *results)):
        return _split_alike(site, rule, mesh, operands, results)
    if not rule.splits and not site.operator.part_of:
        _check_whole(site, operands)
    call = _sharded_call(site, on_mesh(rule, mesh), mesh, operands, results)
    _warn_gathered(call, operands)
    return whole, call, _shardings(call, call.outputs, results), _shardings(call, call.inputs, operands)


def _result_shardings(
    site: Site, rule: ShardingRule, mesh: Any, operands: Any, results: Any
) -> tuple[Any, ...]:
    """Return the shardings of the results, for GSPMD (JAX's partitioner before Shardy)."""
    if not _are_named(operands):
        full = [x.sharding for x in operands if x.shape == results[0].shape]
        return (full[0] if full else NamedSharding(mesh, PartitionSpec()),) * len(results)
    call = _sharded_call(site, on_mesh(rule, mesh), mesh, operands, None)
    return _shardings(call, call.outputs, results)


def _sharded_call(
    site: Site, rule: ShardingRule, mesh: Any, operands: Sequence[Any], results: Sequence[Any] | None
) -> ShardedCall:
    """Return the call with the cheapest plan; ``results`` have the shardings that XLA wants, if any."""
    values = [*operands, *(results or ())]
    layout = Layout.of(mesh, [value.sharding.spec for value in values])
    placements = [layout.placements(value.sharding.spec) for value in values]
    inputs, wanted = placements[: len(operands)], placements[len(operands) :]
    cheapest = plan(rule, layout.sizes, inputs, wanted, equal_chunks=True)
    return ShardedCall.of(site, rule, layout, cheapest, inputs, wanted or None)


def _shardings(call: ShardedCall, placements: Sequence[Any], values: Sequence[Any]) -> tuple[Any, ...]:
    rows = zip(placements, values, strict=True)
    return tuple(call.layout.sharding(row, len(value.shape)) for row, value in rows)


def _are_named(values: Sequence[Any]) -> bool:
    """Whether all shardings are known by the names of mesh axes.

    They are not where some axes of a mesh are manual, and several are not.
    """
    return all(isinstance(value.sharding, NamedSharding) for value in values)


def _split_alike(site: Site, rule: ShardingRule, mesh: Any, operands: Any, results: Any) -> Any:
    """Return what ``custom_partitioning`` needs for shardings without names: all tensors are split alike."""
    first = results[0]
    if not _is_split_alike(rule):
        _check_whole(site, operands)
    shardings = [first.sharding] * (len(operands) + len(results))
    if not _is_split_alike(rule):
        shardings = [value.sharding for value in (*operands, *results)]
    count = len(operands)
    run = functools.partial(emit, site.base)
    return mesh, run, tuple(shardings[count:]), tuple(shardings[:count])


def _is_split_alike(rule: ShardingRule) -> bool:
    """Whether every dimension of all tensors may be split, and all have the same dimensions."""
    rank = len(rule.outputs[0].shape)
    alike = {Shard(dim) for dim in range(rank)}
    shapes = {spec.shape for spec in (*rule.inputs, *rule.outputs)}
    for strategy in rule.splits:
        placements = {*strategy.inputs, *strategy.outputs}
        if len(placements) == 1 and not strategy.has_halo and not strategy.placed:
            alike -= placements
    return len(shapes) == 1 and not alike


def _check_whole(site: Site, operands: Sequence[Any]) -> None:
    """Raise ``HostError`` if an operand is sharded: nothing says how the call is split."""
    for number, value in enumerate(operands):
        if not value.sharding.is_fully_replicated:
            raise sharding_error(site, number, value.sharding)


_warned: set[str] = set()


def _warn_gathered(call: ShardedCall, operands: Sequence[Any]) -> None:
    """Warn once if operands are gathered because there is no way to split the call on this mesh.

    Nothing is proved of a derived operator, or slices would have to know their place on many devices.
    """
    name = call.site.operator.name
    if call.rule.splits or name in _warned:
        return
    if all(operand.sharding.is_fully_replicated for operand in operands):
        return
    _warned.add(name)
    text = f"{name}: each device gathers the whole of sharded operands"
    reason = "it cannot be split on this mesh; polyop explain says why"
    warnings.warn(f"{text}: {reason}", FallbackWarning, stacklevel=2)


def need_one_device(context: Any, site: Site) -> None:
    """Raise ``HostError`` in a program that XLA splits over devices.

    The partitioner never asks how a call without outputs is split.
    """
    if is_split_by_xla(context):
        rule = "has no outputs, and the program runs on several devices"
        hint = "call it inside jax.shard_map, over all axes of the mesh: it runs once per shard"
        raise HostError(site.operator.name, rule, where=site.operator.origin, hint=hint)


def need_shardy(context: Any, site: Site) -> None:
    """Raise ``HostError`` on a partly manual mesh for GSPMD: JAX's own callback would end the process."""
    manual = getattr(context.module_context.axis_context, "manual_axes", None)
    if manual and not jax.config.jax_use_shardy_partitioner:
        rule = "is in a jax.shard_map over a part of the mesh's axes, and XLA splits the rest by GSPMD"
        hint = "leave jax_use_shardy_partitioner True, or give axis_names= all axes of the mesh"
        raise HostError(site.operator.name, rule, where=site.operator.origin, hint=hint)


def is_split_by_xla(context: Any) -> bool:
    """Whether XLA splits the program that is lowered over devices, along one axis of a mesh at least."""
    axes = context.module_context.axis_context
    manual = getattr(axes, "manual_axes", None)
    if manual is not None:
        return set(manual) != set(axes.mesh.axis_names)
    return (getattr(axes, "num_devices", None) or 1) > 1


def needs_devices(*primitives: Any) -> None:
    """Tell JAX that lowering these primitives needs the devices, as custom partitioning does."""
    from jax._src import dispatch

    dispatch.prim_requires_devices_during_lowering.update(primitives)


class ShardyRule(NamedTuple):
    """The arguments of ``custom_partitioning``: the rule, and its factors of two kinds."""

    sharding_rule: str
    reduction_factors: tuple[str, ...]
    need_replication_factors: tuple[str, ...]


def shardy_rule(rule: ShardingRule) -> ShardyRule:
    """Return a call's rule for Shardy.

    >>> from polyop.core.dtypes import dtype
    >>> from polyop.core.spec import Spec
    >>> from polyop.sharding.rule import replicated, split
    >>> strategies = replicated(1, 1), split("m", [0], [None], op="sum", size=4)
    >>> shapes = [(Spec((4, 6), dtype("float32")),), (Spec((6,), dtype("float32")),)]
    >>> shardy_rule(ShardingRule("ns::sum", *shapes, strategies))._asdict()
    {'sharding_rule': 'd0 r1 -> r2', 'reduction_factors': ('d0',), 'need_replication_factors': ('r1', 'r2')}
    """
    fresh = (f"r{number}" for number in itertools.count())
    rows = [[next(fresh) for _ in spec.shape] for spec in (*rule.inputs, *rule.outputs)]
    reductions: list[str] = []
    for number, strategy in enumerate(rule.splits):
        for row, placement in zip(rows, (*strategy.inputs, *strategy.outputs), strict=True):
            if isinstance(placement, Shard):
                row[placement.dim] = f"d{number}"
        if not any(isinstance(placement, Shard) for placement in strategy.outputs):
            reductions.append(f"d{number}")
    count = len(rule.inputs)
    sides: tuple[Any, ...] = (rows[:count], rows[count:])
    text = " -> ".join(", ".join(map(" ".join, side)) for side in sides)
    whole = (name for name in itertools.chain(*rows) if name.startswith("r"))
    return ShardyRule(text, tuple(reductions), tuple(whole))
