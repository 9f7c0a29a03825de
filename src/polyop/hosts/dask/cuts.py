"""Along which dimensions a call follows the chunks of its arrays, and which elements each block reads.

    dims="n, k -> n-k+1", halo={"n": (0, "k-1")}, n = 10 in chunks of 4, k = 3

    own         0:4   4:8   8:10        the union of the ends of all chunks along n
    outputs     0:4   4:8               none begin at 8, so
    own         0:4   4:10              the last block has the rest
    needed      0:6   4:10              with the neighbours

Other axes that are chunked have to be gathered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from ...sharding.placement import Partial, Placement, Shard
from ...sharding.ranges import Range, needed
from ...sharding.rule import AxisStrategy, ShardingRule, sizes_along

Chunks = tuple[tuple[int, ...], ...]
"""The sizes of the chunks along each axis of an array."""


class Cut(NamedTuple):
    """A dimension that follows chunks: what each block has, reads and returns of it."""

    strategy: AxisStrategy
    own: tuple[Range, ...]
    needed: tuple[Range, ...]
    outputs: tuple[Range, ...]

    @property
    def trims(self) -> list[tuple[int, int]]:
        """Return where the outputs of each block begin in what it computes, and how many there are."""
        return [
            (out.begin - read.begin, out.size) for out, read in zip(self.outputs, self.needed, strict=True)
        ]


def cuts_of(rule: ShardingRule, chunks: Sequence[Chunks]) -> list[Cut]:
    """Return the dimensions along which an input is chunked and a call may be split.

    ``chunks`` are those of each input. What the author claims comes before what is proved from loops.
    """
    cuts: list[Cut] = []
    for strategy in rule.splits:
        rows = [
            sizes[placement.dim]
            for placement, sizes in zip(strategy.inputs, chunks, strict=True)
            if isinstance(placement, Shard)
        ]
        chunked = any(len(row) > 1 for row in rows)
        if chunked and not strategy.placed and all(_together(strategy, cut.strategy) for cut in cuts):
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
    """Whether a call can be split in both ways: along different axes, each output combined in one way."""
    columns = zip((*one.inputs, *one.outputs), (*other.inputs, *other.outputs), strict=True)
    for a, b in columns:
        if isinstance(a, Shard) and a == b:
            return False
        if isinstance(a, Partial) and isinstance(b, Partial) and a != b:
            return False
    return True


def _cut(rule: ShardingRule, strategy: AxisStrategy, rows: Sequence[tuple[int, ...]]) -> Cut:
    size = strategy.size
    output_size = next(sizes_along(strategy.outputs, rule.outputs), size)
    begins = sorted({0, *(end for row in rows for end in accumulate(row))} - {size})
    begins = [begin for begin in begins if begin < output_size] or [0]
    own = tuple(map(Range, begins, [*begins[1:], size]))
    return Cut(
        strategy,
        own,
        tuple(needed(one, strategy.before, strategy.after, size) for one in own),
        tuple(map(Range, begins, [*begins[1:], output_size])),
    )
