"""Along which dimensions a call follows the chunks of its arrays, and what each block computes of them.

    dims="n, k -> n-k+1", halo={"n": (0, "k-1")}, n = 10 in chunks of 4, k = 3

    own       0:4   4:8   8:10      the union of the ends of all chunks along n
    output    0:4   4:8             none begins at 8, so
    own       0:4   4:10            the last block has the rest
    input     0:6   4:10            with the neighbours

Other axes that are chunked have to be gathered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from ...sharding.placement import Partial, Placement, Shard
from ...sharding.ranges import Range, Slice, needed
from ...sharding.rule import AxisStrategy, ShardingRule, sizes_along

Chunks = tuple[tuple[int, ...], ...]
"""The sizes of the chunks along each axis of an array."""


class Cut(NamedTuple):
    """A dimension that follows chunks, and the slice that each block computes."""

    strategy: AxisStrategy
    slices: tuple[Slice, ...]

    @property
    def has_place(self) -> bool:
        """Whether a block needs its slice: to cut its outputs, or to compute them."""
        return self.strategy.has_halo or self.strategy.placed


def cuts_of(rule: ShardingRule, chunks: Sequence[Chunks]) -> list[Cut]:
    """Return the dimensions along which an input is chunked and a call may be split.

    ``chunks`` are those of each input. What the author claims comes before what is proved from loops, and
    slices that need not know their place before those that do.
    """
    cuts: list[Cut] = []
    for strategy in sorted(rule.splits, key=lambda one: one.placed):
        rows = [
            sizes[placement.dim]
            for placement, sizes in zip(strategy.inputs, chunks, strict=True)
            if isinstance(placement, Shard)
        ]
        if any(len(row) > 1 for row in rows) and all(_together(strategy, cut.strategy) for cut in cuts):
            cuts.append(_cut(rule, strategy, rows))
    return cuts


def gathered(chunks: Sequence[Chunks], cuts: Sequence[Cut]) -> Iterator[tuple[int, int]]:
    """Yield the number of each input, and its axis, that is chunked and has to be whole."""
    for number, sizes in enumerate(chunks):
        followed = {axis_of(cut.strategy.inputs[number]) for cut in cuts}
        yield from ((number, a) for a, row in enumerate(sizes) if len(row) > 1 and a not in followed)


def axis_of(placement: Placement) -> int | None:
    """Return the axis that is split, or None."""
    return placement.dim if isinstance(placement, Shard) else None


def _together(one: AxisStrategy, other: AxisStrategy) -> bool:
    """Whether a call can be split in both ways: along different axes, each output combined in one way.

    A slice knows its place along one dimension only.
    """
    columns = zip((*one.inputs, *one.outputs), (*other.inputs, *other.outputs), strict=True)
    for a, b in columns:
        if isinstance(a, Shard) and a == b:
            return False
        if isinstance(a, Partial) and isinstance(b, Partial) and a != b:
            return False
    return not (one.placed and other.placed)


def _cut(rule: ShardingRule, strategy: AxisStrategy, rows: Sequence[tuple[int, ...]]) -> Cut:
    size = strategy.size
    output_size = next(sizes_along(strategy.outputs, rule.outputs), size)
    ends = {0, *(end for row in rows for end in accumulate(row))}
    begins = sorted(end for end in ends if end < min(size, output_size)) or [0]
    owns = map(Range, begins, [*begins[1:], size])
    outputs = map(Range, begins, [*begins[1:], output_size])
    slices = (
        Slice(own, needed(own, strategy.before, strategy.after, size), output)
        for own, output in zip(owns, outputs, strict=True)
    )
    return Cut(strategy, tuple(slices))
