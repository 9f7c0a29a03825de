"""Prefetch what a vector loop reads once from end to end, and the rows that a tile reads in a sum.

Hardware prefetchers stop at the end of a page, and do not run far enough ahead of long arithmetic. In a sum
over k each ``a[k, i]`` is in another row of memory, often in another page: they do not follow such strides.
"""

from __future__ import annotations

import itertools
from collections.abc import Set as AbstractSet
from dataclasses import replace

from ..analysis import affine
from ..analysis.strides import UNIT, depends, stride
from ..ir.grammar import INT, Assign, Const, For, If, Load, Op, Store, Var, children, statements, walk
from ..ir.plan import Prefetched
from ..ir.rewriter import substitute
from ..ir.uses import assigned_by, loads_of, stored_by, tensors_of, unconditional_loads
from ..program import Program
from .interleave import is_heavy
from .tile_body import across, without_dots
from .vector_loops import VectorLoop, tiles, vector_loops

MAX_TENSORS = 6
"""Most tensors that a loop prefetches."""


def prefetch(program: Program) -> Program:
    """Return the program with what its vector loops and its tiles prefetch."""
    plan = program.plan
    made = dict(plan.tiles)
    for row, lane in tiles(program):
        tile = plan.tiles[lane.var]
        body = replace(lane, body=without_dots(lane.body, tile))
        rows = tuple((loop.var, load) for loop, load in across(body, row.var))
        made[lane.var] = replace(tile, prefetched=rows)
    found = {loop.node.var: _prefetched(loop) for loop in vector_loops(program)}
    return program.with_(plan=replace(plan, tiles=made, prefetched=found))


def _prefetched(loop: VectorLoop) -> Prefetched:
    node, around = loop.node, loop.around
    known = loop.program.owners.keys() | _cached_tensors(loop)
    next_rows = _reread_rows(node, around, known) if around is not None and loop.repeats else ()
    streams = tuple(e for e in _streams(node, around, known) if e not in next_rows)
    return Prefetched(streams, is_heavy(node), next_rows, _selected(loop))


def _cached_tensors(loop: VectorLoop) -> set[str]:
    """Return tensors whose rows are in the caches: earlier loops of the band have just used them."""
    if loop.threads is None:
        return set()
    kernel, var = loop.program.kernel, loop.threads.var
    before = itertools.takewhile(lambda m: m.var != var, loop.program.plan.band(var))
    names = {member.var for member in before}
    loops = [s for s in statements(kernel.body) if isinstance(s, For) and s.var in names]
    return {name for one in loops for name in tensors_of(*statements(one.body)) | stored_by(one.body)}


def _streams(node: For, around: For | None, own: AbstractSet[str]) -> tuple[Load, ...]:
    """Return one load of each tensor that a vector loop streams through: the one farthest ahead.

    Tensors in ``own``, and those that the loop around reads again in its next iteration, are left out.
    """
    inside = list(statements(node.body))
    if any(isinstance(s, (For, If)) for s in inside):
        return ()
    loads = [e for s in inside if isinstance(s, (Assign, Store)) for e in unconditional_loads(children(s))]
    inner = frozenset(assigned_by(node.body))
    result: dict[str, Load] = {}
    for load in loads:
        if (
            load.buffer in own
            or stride(load, node.var) != UNIT
            or loads_of(*load.index)
            or _uses(load, inner)
        ):
            continue
        if around is not None and not any(depends(i, frozenset({around.var})) for i in load.index):
            continue
        farthest = result.setdefault(load.buffer, load)
        if _offsets(load) > _offsets(farthest):
            result[load.buffer] = load
    return tuple(result.values())[:MAX_TENSORS]


def _reread_rows(node: For, around: For, own: AbstractSet[str]) -> tuple[Load, ...]:
    """Return loads of rows that an earlier loop in the same body has read, and no later one reads.

    They come from a cache, so the row of the next iteration of the loop around can be prefetched meanwhile.
    """
    if any(isinstance(s, For) for s in node.body):
        return ()
    place = next(k for k, s in enumerate(around.body) if s is node)
    rows = [_rows(s) for s in around.body if isinstance(s, For)]
    number = sum(isinstance(s, For) for s in around.body[:place])
    before = [row for loop_rows in rows[:number] for row in loop_rows]
    after = [row for loop_rows in rows[number + 1 :] for row in loop_rows]
    moving = frozenset({around.var})
    found = [
        load
        for row, load in rows[number].items()
        if row in before and row not in after and load.buffer not in own
        if any(depends(i, moving) for i in load.index) and stride(load, node.var) == UNIT
    ]
    return tuple(found[:MAX_TENSORS])


def _selected(loop: VectorLoop) -> tuple[Load | Store, ...]:
    """Return accesses whose row an index tensor selects by the loop around, as ``x[t[i], j]`` by one of i."""
    around, bounds = loop.around, loop.program.bounds
    if around is None or not loop.repeats:
        return ()
    outer = frozenset({around.var})
    if depends(loop.node.lo, outer) or depends(loop.node.hi, outer):
        return ()  # a later iteration may skip the loop, and then its index may not exist
    rows: list[Load | Store] = []
    for row in loop.program.plan.checked_once.get(loop.node.var, ()):
        axes = bounds.axes(row)
        index_loads = [e for axis in axes for e in walk(row.index[axis]) if isinstance(e, Load)]
        always = set(unconditional_loads([row.index[axis] for axis in axes]))
        direct = all(
            e in always and not bounds.axes(e) and stride(e, around.var) == UNIT for e in index_loads
        )
        others = [i for axis, i in enumerate(row.index) if axis not in axes]
        if index_loads and direct and not any(depends(i, outer) for i in others):
            rows.append(row)
    return tuple(rows)


def _rows(node: For) -> dict[object, Load]:
    """Return the loads of a loop by a key that equal loads of a loop with another variable share."""
    direct = [s for s in node.body if isinstance(s, (Assign, Store))]
    written = {s.buffer for s in direct if isinstance(s, Store)}
    loads = [
        e
        for s in direct
        for e in unconditional_loads(children(s))
        if not loads_of(*e.index) and e.buffer not in written
    ]
    here, inner = Var("", INT), frozenset(assigned_by(node.body))
    return {
        (e.buffer, tuple(substitute(i, {node.var: here}) for i in e.index)): e
        for e in loads
        if not (_uses(e, inner) or _divides(e))
    }


def _uses(load: Load, names: frozenset[str]) -> bool:
    return any(depends(i, names) for i in load.index)


def _divides(load: Load) -> bool:
    """Whether the address of a row that does not exist may divide by zero."""
    inside = [e for i in load.index for e in walk(i) if isinstance(e, Op)]
    return any(e.name in ("//", "%") and not isinstance(e.args[1], Const) for e in inside)


def _offsets(load: Load) -> tuple[int, ...]:
    return tuple((affine.linear(i) or {}).get("", 0) for i in load.index)
