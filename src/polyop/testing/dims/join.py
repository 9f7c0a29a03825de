"""Put the results of slices together, as the keyword of a claim says."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from ..case import Array
from ..difference import wide


class UntriedError(Exception):
    """A claim could not be tried; the text is the reason."""


class SliceRefusedError(UntriedError):
    """The operator refuses a slice, although it takes the whole."""


class MisfitError(Exception):
    """The results of slices do not fit together; the text says where."""


class Piece(NamedTuple):
    """A slice ``start:stop`` of a dimension; the operator runs on ``first:last``, which has the halo too."""

    start: int
    stop: int
    first: int
    last: int


class Share(NamedTuple):
    """The elements ``start:stop`` of an output belong to a slice, whose own output begins at ``origin``."""

    start: int
    stop: int
    origin: int

    def positions(self) -> Array:
        """Return where these elements are in the output of the slice."""
        return np.arange(self.start - self.origin, self.stop - self.origin)


def pieces(bounds: Sequence[int], halo: tuple[int, int]) -> list[Piece]:
    """Return the pieces between bounds. At the ends of the dimension there is no neighbour to read."""
    size = bounds[-1]
    return [
        Piece(start, stop, max(0, start - halo[0]), min(size, stop + halo[1]))
        for start, stop in itertools.pairwise(bounds)
    ]


def _sum(results: Sequence[Array]) -> Array:
    """Return the sum, in double precision for floating dtypes: rounding it is not the operator's."""
    exact = results[0].dtype.kind in "biu"
    return functools.reduce(np.add, results if exact else map(wide, results))


COMBINE: Final[dict[str, Callable[[Sequence[Array]], Array]]] = {
    "sum": _sum,
    "max": lambda results: np.maximum.reduce(list(results)),
    "min": lambda results: np.minimum.reduce(list(results)),
}
"""Keyword -> how the results of slices are combined, for an output that lacks the dimension."""


def side_by_side(lengths: Sequence[int]) -> list[Share]:
    """Return the shares of slices without a halo: all elements of each, one slice after the other."""
    stops = list(itertools.accumulate(lengths))
    return [Share(stop - length, stop, stop - length) for stop, length in zip(stops, lengths, strict=True)]


def without_halo(
    lengths: Sequence[int], parts: Sequence[Piece], size: int, output_size: Callable[[int], int]
) -> list[Share]:
    """Return the shares of slices with a halo; ``lengths`` are the sizes of their outputs.

    ``size`` is that of the whole dimension, and ``output_size`` gives that of the output for any size of
    the dimension. Element i of the output belongs to position i of the dimension. Where the size of the
    output is a multiple or a fraction of the dimension's, it belongs to the position in proportion.
    Raises ``UntriedError`` for an output of another size, ``MisfitError`` if a slice lacks an element.
    """
    total = output_size(size)
    place = _places(size, output_size, [part.last - part.first for part in parts])
    shares = []
    for part, length in zip(parts, lengths, strict=True):
        start = min(place(part.start), total)
        stop = total if part.stop == size else min(place(part.stop), total)
        origin = place(part.first)
        if stop - origin > length:
            raise MisfitError(
                f"the slice {part.start}:{part.stop} with its halo, {part.first}:{part.last}, does not give "
                f"element {origin + length} of the output, which belongs to it"
            )
        shares.append(Share(start, stop, origin))
    return shares


def joined(results: Sequence[Array], axis: int, shares: Sequence[Share]) -> Array:
    """Return the elements of each slice's output that belong to it, side by side."""
    rows = zip(results, shares, strict=True)
    return np.concatenate([np.take(result, share.positions(), axis) for result, share in rows], axis)


def _places(size: int, output_size: Callable[[int], int], lengths: Sequence[int]) -> Callable[[int], int]:
    """Return the function from a position of the dimension to the first element that belongs to it."""
    total = output_size(size)
    if all(output_size(length) - length == total - size for length in lengths):
        return lambda position: position
    if all(output_size(length) * size == total * length for length in lengths):

        def place(position: int) -> int:
            if position * total % size:
                raise UntriedError(f"no element of the output begins at position {position}")
            return position * total // size

        return place
    raise UntriedError("the size of the output neither differs by a constant nor is in proportion")
