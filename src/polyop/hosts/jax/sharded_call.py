"""One call on the devices of a mesh, by its plan: edges exchanged, the kernel on slices, results combined."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import lax

from ...call.prepare import normalise
from ...sharding.local_call import local_call
from ...sharding.placement import REPLICATE, Partial, Placements, Shard
from ...sharding.plan import Plan
from ...sharding.ranges import Slice
from ...sharding.rule import AxisStrategy, ShardingRule
from .emit import emit
from .layout import Layout
from .site import Site, site_of
from .split_dimension import SplitDimension, Take, cut, split_dims
from .transitions import Move, moved, moves

_COMBINE: dict[str, Callable[..., Any]] = {"sum": lax.psum, "max": lax.pmax, "min": lax.pmin}


@dataclass(frozen=True)
class ShardedCall:
    """A call that runs as ``plan`` says; called on a device's shards it returns the device's outputs.

    ``inputs`` and ``outputs`` are the placements of the operands and results. Those of the plan, in which
    partial results are combined, are brought from and to them by moves; where there are no moves, by XLA.
    """

    site: Site
    rule: ShardingRule
    layout: Layout
    plan: Plan
    inputs: tuple[Placements, ...]
    input_moves: tuple[tuple[Move, ...], ...]
    combined: tuple[Placements, ...]
    output_moves: tuple[tuple[Move, ...], ...]
    outputs: tuple[Placements, ...]

    @classmethod
    def of(
        cls,
        site: Site,
        rule: ShardingRule,
        layout: Layout,
        plan: Plan,
        present: Sequence[Placements],
        wanted: Sequence[Placements] | None,
    ) -> ShardedCall:
        """Return the call of a plan for operands of the placements ``present``.

        Its results get those ``wanted``; without these, what the plan gives.
        """
        sizes = layout.sizes
        input_shapes, output_shapes = ([spec.shape for spec in row] for row in (rule.inputs, rule.outputs))
        rows = zip(plan.outputs, wanted or plan.outputs, output_shapes, strict=True)
        combined = tuple(_combined(*row, sizes) for row in rows)
        rows = zip(present, plan.inputs, input_shapes, strict=True)
        before = tuple(moves(*row, sizes) for row in rows)
        wanted = wanted or combined
        rows = zip(combined, wanted, output_shapes, strict=True)
        after = tuple(moves(*row, sizes) for row in rows)
        inputs = tuple(a if row else b for a, b, row in zip(present, plan.inputs, before, strict=True))
        outputs = tuple(a if row else b for a, b, row in zip(wanted, combined, after, strict=True))
        return cls(site, rule, layout, plan, inputs, before, combined, after, outputs)

    def __call__(self, *shards: Any) -> tuple[Any, ...]:
        """Return the device's shards of the results."""
        with self.site.mode():  # the partitioner runs outside of it
            inputs = [self._moved(*row) for row in zip(shards, self.input_moves, strict=True)]
            outputs = map(self._combine, range(len(self.outputs)), self._run(inputs))
            return tuple(self._moved(*row) for row in zip(outputs, self.output_moves, strict=True))

    def _moved(self, value: Any, steps: tuple[Move, ...]) -> Any:
        return moved(value, steps, self.layout.axes, self.layout.sizes)

    def _dimensions(self) -> list[SplitDimension]:
        """Return the dimensions in which slices read neighbours or have to know their place."""
        rows = list(zip(self.plan.strategies, self.layout.axes, self.layout.sizes, strict=True))
        dimensions = []
        for strategy in dict.fromkeys(self.plan.strategies):
            axes = tuple(name for other, name, count in rows if other == strategy and count > 1)
            if axes and (strategy.has_halo or strategy.placed):
                dimensions.append(SplitDimension.of(self.rule, strategy, self.layout, axes))
        return dimensions

    def _run(self, shards: Sequence[Any]) -> Sequence[Any]:
        """Return what the kernel gives for the device's slices."""
        dimensions = self._dimensions()
        if not dimensions:
            return emit(self.site.base, *shards)
        extended = list(shards)
        for dimension in dimensions:
            extended = dimension.extended(self.rule, extended)

        def branch(takes: Sequence[Take]) -> Callable[..., Any]:
            return lambda *arrays: self._slice(list(zip(dimensions, takes, strict=True)), list(arrays))

        branches = [branch(takes) for takes in itertools.product(*(one.takes for one in dimensions))]
        chosen: Any = 0
        for dimension in dimensions:
            chosen = chosen * len(dimension.takes) + dimension.number()
        outputs: Sequence[Any] = lax.switch(chosen, branches, *extended)
        return outputs

    def _slice(self, rows: Sequence[tuple[SplitDimension, Take]], arrays: list[Any]) -> tuple[Any, ...]:
        """Return what the kernel gives for the slices that a device takes of its extended arrays."""
        if any(take.is_empty for _, take in rows):
            return tuple(map(self._nothing, range(len(self.outputs))))
        for dimension, take in rows:
            arrays = dimension.taken(take, self.rule, arrays)
        outputs = list(self._emit([(one.strategy, take.place) for one, take in rows], arrays))
        for dimension, take in rows:
            for number, dim in split_dims(dimension.strategy.outputs):
                part = cut(outputs[number], take.output, dim)
                rest = self._local_shape(number)[dim] - part.shape[dim]
                padding = [(0, rest if axis == dim else 0) for axis in range(part.ndim)]
                outputs[number] = jnp.pad(part, padding) if rest else part
        return tuple(outputs)

    def _emit(self, places: Sequence[tuple[AxisStrategy, Slice | None]], arrays: list[Any]) -> Sequence[Any]:
        """Return the outputs of the operator, or of its part that is told where the slice is."""
        site = self.site.base
        if all(place is None for _, place in places):
            return emit(site, *arrays)
        strategies, pieces = zip(*places, strict=True)
        bound, arguments = local_call(site.bound, strategies, pieces, site.unflatten(arrays))
        placed = site_of(bound, normalise(bound.operator, arguments)).in_mode(wide=site.wide)
        return emit(placed, *placed.flatten(arguments))

    def _local_shape(self, number: int) -> tuple[int, ...]:
        """Return the shape of a device's shard of an output, before it is combined."""
        shape = list(self.rule.outputs[number].shape)
        counts = [1] * len(shape)
        for placement, count in zip(self.plan.outputs[number], self.layout.sizes, strict=True):
            if isinstance(placement, Shard):
                counts[placement.dim] *= count
        return tuple(-(-size // count) for size, count in zip(shape, counts, strict=True))

    def _nothing(self, number: int) -> Any:
        """Return what a device gives that computes nothing: what the reduction starts with, else zeros."""
        dtype = self.rule.outputs[number].dtype.numpy
        op = next((p.op for p in self.plan.outputs[number] if isinstance(p, Partial)), "sum")
        return jnp.full(self._local_shape(number), _start(op, dtype), dtype)

    def _combine(self, number: int, value: Any) -> Any:
        """Return an output whose partial placements are combined."""
        rows = list(zip(self.plan.outputs[number], self.combined[number], self.layout.axes, strict=True))
        whole: dict[str, list[str]] = {}
        for source, target, name in rows:
            if isinstance(source, Partial) and isinstance(target, Shard):
                value = lax.psum_scatter(value, name, scatter_dimension=target.dim, tiled=True)
            elif isinstance(source, Partial):
                whole.setdefault(source.op, []).append(name)
        for op, names in whole.items():
            value = _COMBINE[op](value, tuple(names))
        return value


def _combined(
    placements: Placements, wanted: Placements, shape: Sequence[int], sizes: Sequence[int]
) -> Placements:
    """Return the placements of a result: partial ones become the wanted slices, else the whole.

    A slice of a slice is along a minor mesh axis, and all slices are equal.
    """
    result = list(placements)
    for axis, (source, target) in enumerate(zip(placements, wanted, strict=True)):
        if not isinstance(source, Partial):
            continue
        result[axis] = REPLICATE
        if source.op == "sum" and isinstance(target, Shard):
            axes = [i for i, one in enumerate(result) if one == target]
            count = sizes[axis] * math.prod(sizes[i] for i in axes)
            if all(i < axis for i in axes) and not shape[target.dim] % count:
                result[axis] = target
    return tuple(result)


def _start(op: str, dtype: Any) -> Any:
    """Return what a reduction starts with."""
    if op == "sum":
        return 0
    if jnp.issubdtype(dtype, jnp.inexact):
        return -math.inf if op == "max" else math.inf
    if dtype.kind == "b":
        return op == "min"
    limits = jnp.iinfo(dtype)
    return limits.min if op == "max" else limits.max
