"""The neighbours that slices along a dimension read, exchanged between devices.

All devices run one program on arrays of one shape, while slices have different lengths: the first and the
last have no neighbour on one side. So each device gets an extended array of the same shape, and takes from it
what its slice needs::

                   left edge, own chunk, right edge
    device 0       [  - | 0 1 2 | 3 ]     takes 0 1 2 3
    device 1       [  2 | 3 4 5 | 6 ]     takes 2 3 4 5 6
    device 2       [  5 | 6 7 8 | - ]     takes 5 6 7 8

Where a halo is wider than a chunk, edges come from several devices on a side.

One permute brings each device at most one edge. The edges from the device ``k`` places on, and from the one
``n - k`` places back, can share one, as no device has both. So two devices exchange their edges at once::

                   own chunk, edge
    device 0       [ 0 1 2 | 3 ]          takes 0 1 2 3
    device 1       [ 3 4 5 | 2 ]          takes 2, then 3 4 5
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import lax

from ...sharding.ranges import Range, chunks


@dataclass(frozen=True)
class Edge:
    """The ``width`` elements that a device gets in one permute.

    ``senders`` has for each device the one that it gets them from; it is -1 where nobody sends. ``starts``
    has for each sender where they begin in its chunk.
    """

    width: int
    senders: tuple[int, ...]
    starts: tuple[int, ...]

    @property
    def is_own(self) -> bool:
        """Whether it is each device's own chunk."""
        return self.senders == (*range(len(self.senders)),)


@dataclass(frozen=True)
class Exchange:
    """How the devices along the mesh ``axes`` get what their slices of one dimension need.

    ``devices`` has the number of each device in a permutation, which counts mesh axes in the mesh's order.
    """

    axes: tuple[str, ...]
    devices: tuple[int, ...]
    edges: tuple[Edge, ...]
    pieces: tuple[tuple[Range, ...], ...]
    """For each device, which parts of its extended array are its slice."""

    def extended(self, chunk: Any, dim: int) -> Any:
        """Return a device's chunk between the edges of its neighbours; an edge that nobody sends is zeros."""
        parts = []
        for edge in self.edges:
            part = chunk
            if not edge.is_own:
                rows = [(sender, i) for i, sender in enumerate(edge.senders) if sender >= 0]
                pairs = [(self.devices[sender], self.devices[i]) for sender, i in rows]
                part = lax.ppermute(self._edge(chunk, edge, dim), self.axes, pairs)
            parts.append(part)
        return jnp.concatenate(parts, dim)

    def _edge(self, chunk: Any, edge: Edge, dim: int) -> Any:
        if len({*edge.starts}) == 1:
            return lax.slice_in_dim(chunk, edge.starts[0], edge.starts[0] + edge.width, axis=dim)
        start = jnp.asarray(edge.starts)[lax.axis_index(self.axes)]
        return lax.dynamic_slice_in_dim(chunk, start, edge.width, dim)


def exchange(axes: tuple[str, ...], devices: Sequence[int], size: int, needed: Sequence[Range]) -> Exchange:
    """Return the exchange after which each device has the elements that it needs of a dimension of ``size``.

    Before it the devices have equal chunks.

    >>> for edge in exchange(("x",), (0, 1), 6, [Range(0, 4), Range(2, 6)]).edges:
    ...     print(edge)
    Edge(width=3, senders=(0, 1), starts=(0, 0))
    Edge(width=1, senders=(1, 0), starts=(2, 0))
    """
    have = chunks(size, len(needed))
    edges: list[Edge] = []
    pieces: list[dict[int, Range]] = [
        {} for _ in needed
    ]  # by the position in the whole: in the extended array
    length = 0
    for parts in _rotations(have, needed):
        edge = _edge(have, parts)
        edges.append(edge)
        for i, (sender, part) in parts.items():
            if part.size:
                begin = length + part.begin - have[sender].begin - edge.starts[sender]
                pieces[i][part.begin] = Range(begin, begin + part.size)
        length += edge.width
    return Exchange(axes, tuple(devices), tuple(edges), tuple(map(_joined, pieces)))


Parts = dict[int, tuple[int, Range]]
"""By device: the one that it gets elements from, and which, as positions in the whole."""


def _rotations(have: Sequence[Range], needed: Sequence[Range]) -> list[Parts]:
    """Return what devices get in each permute; those whose elements are before the own chunk come first."""
    count = len(needed)
    rows: dict[int, Parts] = {}
    for shift in range(count):
        senders = ((i, (i + shift) % count) for i in range(count))
        parts = {i: (j, have[j].intersect(needed[i])) for i, j in senders}
        parts = {i: row for i, row in parts.items() if row[1].size or not shift}
        if parts:
            is_before = all(sender < i for i, (sender, _) in parts.items())
            rows[shift - count if is_before else shift] = parts
    return [rows[shift] for shift in sorted(rows)]


def _edge(have: Sequence[Range], parts: Parts) -> Edge:
    """Return the edge in which each sender's part lies."""
    chunk, numbers = have[0].size, range(len(have))
    senders = tuple(parts[i][0] if i in parts else -1 for i in numbers)
    if senders == (*numbers,):
        return Edge(chunk, senders, (0,) * len(have))
    width = max(part.size for _, part in parts.values())
    starts = {j: min(part.begin - have[j].begin, chunk - width) for j, part in parts.values()}
    if len({*starts.values()}) == 1:  # those who send to nobody do as the others
        return Edge(width, senders, (next(iter(starts.values())),) * len(have))
    return Edge(width, senders, tuple(starts.get(j, 0) for j in numbers))


def _joined(pieces: dict[int, Range]) -> tuple[Range, ...]:
    """Return the parts of a slice in their order, joined where they touch."""
    rows: list[Range] = []
    for _, piece in sorted(pieces.items()):
        if rows and rows[-1].end == piece.begin:
            rows[-1] = Range(rows[-1].begin, piece.end)
        else:
            rows.append(piece)
    return tuple(rows)
