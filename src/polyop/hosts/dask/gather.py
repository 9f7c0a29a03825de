"""The blocks that a call reads: chunks as the cuts need them, with the edges of their neighbours."""

from __future__ import annotations

import itertools
import operator
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from .cuts import Cut


def read_blocks(x: Any, cuts: Mapping[int, Cut]) -> Any:
    """Return an array whose blocks are what each call reads of ``x``; ``cuts`` are those of its axes.

    An axis without a cut is one chunk. With a halo, the blocks overlap.
    """
    sizes = [
        tuple(own.size for own in cuts[axis].own) if axis in cuts else (size,)
        for axis, size in enumerate(x.shape)
    ]
    if x.chunks != tuple(sizes):
        x = x.rechunk(tuple(sizes))
    for axis, cut in cuts.items():
        if cut.strategy.has_halo:
            x = _with_neighbours(x, axis, cut)
    return x


def _with_neighbours(x: Any, axis: int, cut: Cut) -> Any:
    """Return ``x`` with blocks that overlap along one axis. Only the edges of neighbours are sent."""
    name = f"halo-{tokenize(x.name, axis, cut.own, cut.needed)}"
    rows = [range(count) for count in x.numblocks]
    rows[axis] = range(1)
    graph: dict[Any, Any] = {}
    for index in itertools.product(*rows):
        for number in range(len(cut.own)):
            pieces = []
            for source, begin, end in _pieces(cut, number):
                key = (x.name, *_at(index, axis, source))
                if source != number:
                    part = tuple(slice(begin, end) if a == axis else slice(None) for a in range(x.ndim))
                    edge = (f"edge-{name}", *_at(index, axis, source), begin, end)
                    graph[edge] = (operator.getitem, key, part)
                    key = edge
                pieces.append(key)
            block = (name, *_at(index, axis, number))
            graph[block] = (np.concatenate, pieces, axis)
    chunks = list(x.chunks)
    chunks[axis] = tuple(read.size for read in cut.needed)
    layers = HighLevelGraph.from_collections(name, graph, dependencies=[x])
    return da.Array(layers, name, tuple(chunks), meta=x)


def _pieces(cut: Cut, number: int) -> Iterator[tuple[int, int, int]]:
    """Yield the blocks that one block reads, and which of their elements, counted in that block."""
    read = cut.needed[number]
    first = bisect_right([own.begin for own in cut.own], read.begin) - 1
    for source in range(first, len(cut.own)):
        part = cut.own[source].intersect(read)
        if not part.size:
            return
        begin = cut.own[source].begin
        yield source, part.begin - begin, part.end - begin


def _at(index: tuple[int, ...], axis: int, number: int) -> tuple[int, ...]:
    return (*index[:axis], number, *index[axis + 1 :])
