"""Which elements of a dimension each device computes, which it has, and which it needs.

    chunks(10, 4)                          (0, 3) (3, 6) (6, 9) (9, 10)     as torch.chunk cuts
    needed((3, 6), 1, 1, 10)               (2, 7)                           with a halo of one
    transfers(have, need)                  what each device sends to each other one

Positions count in the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .rule import AxisStrategy, ShardingRule, sizes_along


class Range(NamedTuple):
    """Positions from ``begin`` up to but not including ``end``."""

    begin: int
    end: int

    @property
    def size(self) -> int:
        """The number of positions; 0 if the range is empty."""
        return max(0, self.end - self.begin)

    def intersect(self, other: Range) -> Range:
        """Return what both ranges have; an empty range begins where it ends."""
        begin = max(self.begin, other.begin)
        return Range(begin, max(begin, min(self.end, other.end)))


def chunks(size: int, count: int) -> list[Range]:
    """Return the chunks of a dimension over ``count`` devices, as PyTorch cuts it; the last may be empty.

    >>> chunks(5, 4)
    [Range(begin=0, end=2), Range(begin=2, end=4), Range(begin=4, end=5), Range(begin=5, end=5)]
    """
    each = -(-size // count)
    return [Range(min(i * each, size), min((i + 1) * each, size)) for i in range(count)]


class Slice(NamedTuple):
    """What one device computes of a dimension.

    ``own``: the positions that belong to it. ``input``: the elements of each sharded input that it runs on.
    ``output``: the elements of each sharded output that are its chunk, counted in the whole.
    """

    own: Range
    input: Range
    output: Range


def slices(rule: ShardingRule, strategy: AxisStrategy, count: int) -> list[Slice]:
    """Return what each of ``count`` devices computes.

    The chunks of the outputs decide, or those of the inputs if no output is sharded. Element i of an output
    belongs to position i, and the last slice that is not empty has the rest of the dimension.
    """
    size = strategy.size
    output_size = next(sizes_along(strategy.outputs, rule.outputs), size)
    outputs = chunks(output_size, count)
    last = max((i for i, chunk in enumerate(outputs) if chunk.size), default=0)
    owns = [Range(chunk.begin, size if i == last else chunk.end) for i, chunk in enumerate(outputs)]
    return [
        Slice(own, needed(own, strategy.before, strategy.after, size) if chunk.size else own, chunk)
        for own, chunk in zip(owns, outputs, strict=True)
    ]


def input_range(strategy: AxisStrategy, piece: Slice, size: int) -> Range:
    """Return the elements of an input that a slice runs on; ``size`` is the whole input's size.

    An input that is shorter than the dimension, as the gradient of a window's output, begins at the same
    place and ends earlier.

    >>> strategy = AxisStrategy("n", (), (), size=8, after=2)
    >>> input_range(strategy, Slice(Range(0, 4), Range(0, 6), Range(0, 4)), 6)
    Range(begin=0, end=4)
    """
    begin, end = piece.input
    begin = min(begin, size)
    return Range(begin, max(begin, end - (strategy.size - size)))


def halo_size(rule: ShardingRule, strategy: AxisStrategy, count: int, size: int) -> int:
    """Return how many positions of an input of ``size`` the device with the largest halo gets from others."""
    pieces = (input_range(strategy, piece, size) for piece in slices(rule, strategy, count))
    rows = zip(pieces, chunks(size, count), strict=True)
    return max(need.size - need.intersect(have).size for need, have in rows)


def needed(own: Range, before: int, after: int, size: int) -> Range:
    """Return the positions that a slice reads: its own, and its neighbours as far as there are any."""
    return Range(max(0, own.begin - before), min(size, own.end + after))


def transfers(have: Sequence[Range], need: Sequence[Range]) -> list[list[Range]]:
    """Return for each device what it sends to each device, itself included: rows are senders.

    >>> rows = transfers(chunks(6, 2), [Range(0, 4), Range(2, 6)])
    >>> [[(sent.begin, sent.end) for sent in row] for row in rows]
    [[(0, 3), (2, 3)], [(3, 4), (3, 6)]]
    """
    return [[own.intersect(wanted) for wanted in need] for own in have]


def output_offset(piece: Slice) -> int:
    """Return where a device's chunk of an output begins in what it computed."""
    return piece.output.begin - piece.input.begin
