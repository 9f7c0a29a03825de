"""One dimension that is split over devices, whose slices read neighbours or need their offset."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import lax

from ...sharding.placement import Placements, Shard
from ...sharding.ranges import Range, Slice, input_range, output_offset, slices
from ...sharding.rule import AxisStrategy, ShardingRule, sizes_along
from .halo import Exchange, exchange
from .layout import Layout


@dataclass(frozen=True)
class Take:
    """What one device takes of its extended arrays, and which elements of the kernel's outputs are its chunk.

    ``pieces`` are by the size of the whole array. ``place`` is the slice, if the kernel has to know it.
    ``is_empty``: the device's chunk of the outputs is empty, so it has nothing to compute.
    """

    pieces: tuple[tuple[int, tuple[Range, ...]], ...]
    output: Range
    place: Slice | None
    is_empty: bool


@dataclass(frozen=True)
class SplitDimension:
    """A split dimension, and how the devices along the mesh ``axes`` get their slices of it.

    ``takes`` are the different ones, and ``numbers`` says for each device which of them it has.
    """

    strategy: AxisStrategy
    axes: tuple[str, ...]
    exchanges: dict[int, Exchange]
    takes: tuple[Take, ...]
    numbers: tuple[int, ...]

    @classmethod
    def of(
        cls, rule: ShardingRule, strategy: AxisStrategy, layout: Layout, axes: tuple[str, ...]
    ) -> SplitDimension:
        """Return the dimension of a strategy, split along these axes."""
        devices = layout.devices(axes)
        rows = slices(rule, strategy, len(devices))
        exchanges = {
            size: exchange(axes, devices, size, [input_range(strategy, row, size) for row in rows])
            for size in {*sizes_along(strategy.inputs, rule.inputs)}
        }
        takes = []
        for number, row in enumerate(rows):
            pieces = tuple((size, one.pieces[number]) for size, one in exchanges.items())
            begin = output_offset(row)
            output = Range(begin, begin + row.output.size)
            takes.append(Take(pieces, output, row if strategy.placed else None, not row.output.size))
        different = tuple(dict.fromkeys(takes))
        return cls(strategy, axes, exchanges, different, tuple(map(different.index, takes)))

    def extended(self, rule: ShardingRule, shards: list[Any]) -> list[Any]:
        """Return the device's arrays with the edges of its neighbours."""
        result = list(shards)
        for number, dim in split_dims(self.strategy.inputs):
            result[number] = self.exchanges[rule.inputs[number].shape[dim]].extended(shards[number], dim)
        return result

    def number(self) -> Any:
        """Return which of ``takes`` the device has, in the program."""
        return jnp.asarray(self.numbers)[lax.axis_index(self.axes)]

    def taken(self, take: Take, rule: ShardingRule, arrays: list[Any]) -> list[Any]:
        """Return the slices that a device takes of its extended arrays."""
        result = list(arrays)
        pieces = dict(take.pieces)
        for number, dim in split_dims(self.strategy.inputs):
            parts = [cut(arrays[number], piece, dim) for piece in pieces[rule.inputs[number].shape[dim]]]
            empty = cut(arrays[number], Range(0, 0), dim)
            result[number] = jnp.concatenate(parts, dim) if len(parts) > 1 else parts[0] if parts else empty
        return result


def split_dims(placements: Placements) -> Iterator[tuple[int, int]]:
    """Yield the number of each tensor that is split, and its dimension."""
    for number, placement in enumerate(placements):
        if isinstance(placement, Shard):
            yield number, placement.dim


def cut(array: Any, part: Range, dim: int) -> Any:
    """Return a part of an array along one dimension."""
    return lax.slice_in_dim(array, part.begin, part.end, axis=dim)
