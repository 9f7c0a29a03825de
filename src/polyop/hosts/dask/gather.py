"""The blocks that a call reads: chunks as the cuts need them, with the edges of their neighbours."""

from __future__ import annotations

import itertools
import operator
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from ...core.errors import UnsupportedError
from ...sharding.ranges import Range, input_range
from .cuts import Cut


def read_blocks(x: Any, cuts: Mapping[int, Cut]) -> Any:
    """Return an array whose blocks are what each call reads of ``x``; ``cuts`` are those of its axes.

    An axis without a cut is one chunk. With a halo, the blocks overlap.
    """
    owns = {axis: _own(cut, x.shape[axis]) for axis, cut in cuts.items()}
    chunks = tuple(
        tuple(own.size for own in owns[axis]) if axis in owns else (size,)
        for axis, size in enumerate(x.shape)
    )
    if x.chunks != chunks:
        x = x.rechunk(chunks)
    for axis, cut in cuts.items():
        reads = [input_range(cut.strategy, one, owns[axis][-1].end) for one in cut.slices]
        if reads != owns[axis]:
            x = _with_neighbours(x, axis, owns[axis], reads)
    return x


def _own(cut: Cut, size: int) -> list[Range]:
    """Return the elements that belong to blocks, of an input that may be shorter than the dimension."""
    whole = Range(0, size)
    owns = [one.own.intersect(whole) for one in cut.slices if one.own.begin < size] or [whole]
    return [*owns[:-1], Range(owns[-1].begin, size)]


def _with_neighbours(x: Any, axis: int, owns: Sequence[Range], reads: Sequence[Range]) -> Any:
    """Return ``x`` with blocks that overlap along one axis. Only the edges of neighbours are sent.

    Raises ``UnsupportedError`` for arrays of dask's experimental ``array.query-planning``.
    """
    if not hasattr(x, "__dask_layers__"):
        rule = "cannot add the edges of neighbours to arrays while array.query-planning is on"
        hint = 'dask.config.set({"array.query-planning": False}) before dask.array is imported'
        raise UnsupportedError("dask", rule, hint=hint)
    name = f"halo-{tokenize(x.name, axis, owns, reads)}"
    rows = [range(count) for count in x.numblocks]
    rows[axis] = range(1)
    graph: dict[Any, Any] = {}
    for index in itertools.product(*rows):
        for number, read in enumerate(reads):
            pieces = []
            for source, part in _pieces(owns, read):
                key = (x.name, *_at(index, axis, source))
                if part != Range(0, owns[source].size):
                    cut = tuple(slice(*part) if a == axis else slice(None) for a in range(x.ndim))
                    edge = (f"edge-{name}", *_at(index, axis, source), *part)
                    graph[edge] = (operator.getitem, key, cut)
                    key = edge
                pieces.append(key)
            block = (name, *_at(index, axis, number))
            graph[block] = (np.concatenate, pieces, axis)
    chunks = list(x.chunks)
    chunks[axis] = tuple(read.size for read in reads)
    layers = HighLevelGraph.from_collections(name, graph, dependencies=[x])
    return da.Array(layers, name, tuple(chunks), meta=x)


def _pieces(owns: Sequence[Range], read: Range) -> Iterator[tuple[int, Range]]:
    """Yield the blocks that one block reads, and which of their elements; an empty part if it reads none."""
    first = max(0, bisect_right([own.begin for own in owns], read.begin) - 1)
    for source in range(first, len(owns)):
        own = owns[source]
        part = own.intersect(read)
        if part.size or source == first:
            yield source, Range(part.begin - own.begin, part.end - own.begin)
        if own.end >= read.end:
            return


def _at(index: tuple[int, ...], axis: int, number: int) -> tuple[int, ...]:
    return (*index[:axis], number, *index[axis + 1 :])
