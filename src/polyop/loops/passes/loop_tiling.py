"""Loop tiling: a nest that transposes is walked in tiles, whose rows and columns both stay in the cache.

    for i in range(n):                     for j_outer in range(ceil_div(m, 64)):
        for j in range(m):            ->       for i in range(n):
            y[j, i] = x[i, j]                      for j in range(64 * j_outer, min(64 * j_outer + 64, m)):
                                                       y[j, i] = x[i, j]

In the author's order one of the two walks across rows, and touches a line of memory for each element. In the
new order the loop of the stores runs along the lanes, and the inner loop along the rows that are loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..analysis.loop_names import by_variable, loop_names
from ..analysis.strides import UNIFORM, depends, stride
from ..analysis.transposes import across, is_transposing
from ..ir.grammar import For, If, Stmt, Store, perfect, statements
from ..ir.schedule import Step
from ..ir.stops import stop_flags
from ..ir.uses import loads_of
from ..program import Program
from .apply_schedule import with_steps
from .strip_mine import trips

COLUMNS = 64
"""Iterations of a tile along the rows that are loaded: a few neighbouring cache lines of each row."""
MIN_TRIPS = 4
"""A loop that is known to have fewer iterations is not tiled: what it loads is in one cache line anyway."""


def loop_tiling(program: Program) -> Program:
    """Return the program with its transposing nests tiled; each change is proved legal before it is made."""
    for nest in list(_nests(program.kernel.body)):
        chosen = _chosen(program, nest)
        if chosen is not None:
            program = _tiled(program, nest, *chosen)
    return program


def _nests(body: Sequence[Stmt]) -> Iterator[list[For]]:
    """Yield the perfect nests of two loops or more around statements without loops."""
    for node in body:
        if isinstance(node, If):
            yield from _nests((*node.body, *node.orelse))
        if not isinstance(node, For):
            continue
        nest = perfect(node)
        if any(isinstance(s, For) for s in statements(nest[-1].body)):
            yield from _nests(nest[-1].body)
        elif len(nest) > 1:
            yield nest


def _chosen(program: Program, nest: Sequence[For]) -> tuple[For, For] | None:
    """Return the loop of the lanes and the loop of the columns, None for a nest that does not transpose."""
    inner, own = nest[-1], frozenset(loop.var for loop in nest)
    pairs = [
        (lanes, columns)
        for lanes in nest
        for columns in nest
        if lanes is not columns and is_transposing(inner, lanes.var, columns.var)
    ]
    stores = [s for s in statements(inner.body) if isinstance(s, Store)]
    if not pairs or any(stride(s, loop.var) == UNIFORM for s in stores for loop in nest):
        return None  # a sum: its loops are the inner ones
    if not _is_free(program, nest, own):
        return None
    counts = [len(across(inner, lanes.var, columns.var)) for lanes, columns in pairs]
    lanes, columns = pairs[counts.index(max(counts))]
    short = any(count is not None and count < MIN_TRIPS for count in map(trips, (lanes, columns)))
    parallel = all(program.kinds[loop.var].name == "parallel" for loop in (lanes, columns))
    return (lanes, columns) if max(counts) and parallel and not short else None


def _is_free(program: Program, nest: Sequence[For], own: frozenset[str]) -> bool:
    """Whether the author does not name the loops of a nest, and each has the same range in all iterations."""
    fixed = own & (program.frozen | program.named_loops()) or any(own & {*o} for o in program.owners.values())
    if fixed or any(loop.hint in ("serial", "border") or stop_flags(loop) for loop in nest):
        return False
    ends = [end for loop in nest for end in (loop.lo, loop.hi)]
    return not any(depends(end, own) or bool(loads_of(end)) for end in ends)


def _tiled(program: Program, nest: Sequence[For], lanes: For, columns: For) -> Program:
    """Return the program with one nest tiled, or as it is where that is not legal."""
    named = loop_names(program.kernel, program.loops)
    names = by_variable(named)
    count, column = trips(columns), names[columns.var]
    steps, outer, inner = [], [], column
    if count is None or count > COLUMNS:
        steps = [Step("tile", (column,), COLUMNS)]
        outer, inner = [f"{column}.outer"], f"{column}.inner"
    written = [part for loop in nest for part in ([*outer, inner] if loop is columns else [names[loop.var]])]
    rest = [names[loop.var] for loop in nest if loop is not lanes and loop is not columns]
    order = (*rest, *outer, names[lanes.var], inner)
    if list(order) != written:
        steps.append(Step("interchange", order))
    changed = with_steps(program.with_(loops=named), steps, "loop_tiling") if steps else None
    if changed is None:
        return program
    if any(loop.var not in program.loops.values() for loop in nest):  # a schedule has no name for it
        return changed.with_(loops=program.loops, applied=program.applied)
    return changed
