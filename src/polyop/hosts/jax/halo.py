"""The neighbours that slices along a dimension read, exchanged between devices.

All devices run one program on arrays of one shape, while slices have different lengths: the first and the
last have no neighbour on one side. So each device gets an extended array of the same shape, and takes from it
what its slice needs::

                   left edge, own chunk, right edge
    device 0       [  - | 0 1 2 | 3 ]     takes 0 1 2 3
    device 1       [  2 | 3 4 5 | 6 ]     takes 2 3 4 5 6
    device 2       [  5 | 6 7 8 | - ]     takes 5 6 7 8

Where a halo is wider than a chunk, edges come from several devices on a side.
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
    """What device i gets from device i + ``shift``: ``width`` elements.

    ``starts`` has for each sender where they begin in its chunk.
    """

    shift: int
    width: int
    starts: tuple[int, ...]


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
            if edge.shift:
                count = len(self.devices)
                receivers = [i for i in range(count) if 0 <= i + edge.shift < count]
                pairs = [(self.devices[i + edge.shift], self.devices[i]) for i in receivers]
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
    Edge(shift=-1, width=1, starts=(2, 2))
    Edge(shift=0, width=3, starts=(0, 0))
    Edge(shift=1, width=1, starts=(0, 0))
    """
    count = len(needed)
    have = chunks(size, count)
    edges: list[Edge] = []
    pieces: list[list[Range]] = [[] for _ in needed]  # of each device, in its extended array
    length = 0
    for shift in range(1 - count, count):
        sent = {
            i: have[i + shift].intersect(needed[i])
            for i in range(count)
            if 0 <= i + shift < count and have[i + shift].intersect(needed[i]).size
        }
        if not sent and shift:
            continue
        edge = _edge(shift, have, {i + shift: part for i, part in sent.items()})
        edges.append(edge)
        for i, part in sent.items():
            begin = length + part.begin - have[i + shift].begin - edge.starts[i + shift]
            _append(pieces[i], Range(begin, begin + part.size))
        length += edge.width
    return Exchange(axes, tuple(devices), tuple(edges), tuple(map(tuple, pieces)))


def _edge(shift: int, have: Sequence[Range], sent: dict[int, Range]) -> Edge:
    """Return the edge in which each sender's part lies; ``sent`` is by sender, and counts in the whole."""
    chunk = have[0].size
    if not shift:
        return Edge(0, chunk, (0,) * len(have))
    width = max(part.size for part in sent.values())
    starts = {j: min(part.begin - have[j].begin, chunk - width) for j, part in sent.items()}
    if len({*starts.values()}) == 1:  # those who send to nobody do as the others
        return Edge(shift, width, (next(iter(starts.values())),) * len(have))
    return Edge(shift, width, tuple(starts.get(j, 0) for j in range(len(have))))


def _append(pieces: list[Range], piece: Range) -> None:
    """Add a piece, joined with the one before it where they touch."""
    if pieces and pieces[-1].end == piece.begin:
        pieces[-1] = Range(pieces[-1].begin, piece.end)
    else:
        pieces.append(piece)
