"""Divide a triangular nest into blocks in which the bounds of a sum are constant, except at the edges.

    for j in range(n):                         for j_outer in range(ceil_div(n, 32)):
        total = 0.0                                for j in range(32 * j_outer, min(32 * j_outer + 32, n)):
        for k in range(j + 1):           ->            total = 0.0
            total += a[k] * b[k, j]                    for k in range(32 * j_outer + 1):
        c[j] = total                                       total += a[k] * b[k, j]
                                                       for k_edge in range(32 * j_outer + 1, ...):
                                                           if k_edge < j + 1:
                                                               total += a[k_edge] * b[k_edge, j]
                                                       c[j] = total

Lanes need one range for all of them. They must run along rows of memory: a sum that does so itself has its
lanes there. In a contraction, whose rows share what lanes load, blocks are of rows and lanes. But for its
edges, each is a rectangle for a register tile:

    for i in range(n):                         for i_outer in range(ceil_div(n, 48)):
        for j in range(i, n):                      for j_outer in range(ceil_div(n - 48 * i_outer, 64)):
            for k in range(i, j + 1):    ->            for i in ...:
                c[i, j] += a[i, k] * b[k, j]               for j in ...:
                                                               total = c[i, j]
                                                               ...
                                                               c[i, j] = total

Each element has its sum in the order of before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..analysis import affine, ranges
from ..analysis.bounds import always_runs, is_inside_too
from ..analysis.loop_order import reordered
from ..analysis.polyhedra import scalar_owners
from ..analysis.strides import COSTS, UNIFORM, UNIT, depends, stride
from ..ir.grammar import (
    INT,
    Assign,
    Const,
    Expr,
    For,
    If,
    Load,
    Stmt,
    Store,
    Type,
    Var,
    names_of,
    statements,
    unused,
)
from ..ir.note import Note
from ..ir.operate import operate
from ..ir.rewriter import with_statements
from ..ir.stops import stop_flags
from ..ir.types import WIDE
from ..ir.uses import accesses_of, loads_of, tensors_of, variables_of
from ..program import Program
from .index_set_splitting import renamed_copy
from .strip_mine import loop_of, tiled, with_loop_replaced

BLOCK_LANES = 32
"""Iterations of a block: four vectors of float32 with AVX2, so that no sum waits for the one before."""
TILE_ROWS, TILE_LANES = 48, 64
"""Iterations of a block of a contraction: whole register tiles of all targets, and few edges."""
SHARED_LOAD_COST = 0.5
"""The cost of a load that the rows of a register tile share; a contiguous one of their own costs 1."""


def triangular_blocks(program: Program) -> Program:
    """Return the program with loops in blocks in whose lanes sums have different ranges."""
    kept = _kept(program)
    for nest in list(_nests(program.kernel.body, ())):
        found = None if kept & {nest.row.var, nest.lane.var} else _contraction(program, nest)
        if found is not None:
            program = _in_tiles(program, found)
    for loop in [s for s in statements(program.kernel.body) if isinstance(s, For)]:
        if loop.var not in kept and _is_candidate(program, loop):
            program = _blocked(program, loop)
    return program


def _kept(program: Program) -> set[str]:
    """Return the variables of loops that the author's schedule has divided, or wants on threads.

    Those that it has only put into an order, or fused, can have blocks.
    """
    words: dict[str, set[str]] = {}
    for step in program.schedule.steps:
        words.setdefault(step.word, set()).update(program.loops.get(name, "") for name in step.loops)
    is_divided = words.keys() & {"tile", "unroll"}
    moved = set() if is_divided else words.get("interchange", set()) | words.get("fuse", set())
    return {*program.frozen} - moved | words.get("parallel", set())


def _is_candidate(program: Program, loop: For) -> bool:
    """Whether the iterations of a loop would be lanes, if the sums in it had one range."""
    sums = list(_edges(loop, frozenset({loop.var})))
    if not sums or not _is_free(program, loop):
        return False
    stores = [s for s in loop.body if isinstance(s, Store)]
    if not stores or any(stride(s, loop.var) != UNIT for s in stores):
        return False
    for inner in sums:
        accesses = accesses_of(inner.body)
        along = [sum(COSTS[stride(a, var)] for a in accesses) for var in (loop.var, inner.var)]
        if along[0] >= along[1] or any(isinstance(s, (For, Store)) for s in statements(inner.body)):
            return False
    return True


def _is_free(program: Program, loop: For) -> bool:
    """Whether the iterations of a loop have no order, and its last one is known."""
    kind = program.kinds.get(loop.var)
    is_parallel = kind is not None and kind.name == "parallel"
    return is_parallel and not (loop.hint or stop_flags(loop) or loads_of(loop.lo, loop.hi))


def _edges(loop: For, names: frozenset[str]) -> Iterator[For]:
    """Yield the loops directly in a loop whose range follows from the loops ``names``."""
    for node in loop.body:
        if isinstance(node, For) and not node.hint and not stop_flags(node):
            ends = [affine.linear(e) for e in (*_lows(node), *_highs(node))]
            factors = {form.get(name, 0) for form in ends if form is not None for name in names}
            if None not in ends and factors <= {-1, 0, 1} and factors != {0}:
                yield node


def _lows(loop: For) -> list[Expr]:
    return affine.operands("max", loop.lo)


def _highs(loop: For) -> list[Expr]:
    return affine.operands("min", loop.hi)


def _blocked(program: Program, loop: For) -> Program:
    """Return the program with a loop in blocks, and the sums in it in parts."""
    names = {s.var for s in _edges(loop, frozenset({loop.var}))}
    program, _ = tiled(program, loop, BLOCK_LANES)
    lane = loop_of(program.kernel, loop.var)
    outer = [n for n, loops in scalar_owners(program.kernel).items() if not names & {*loops}]
    body = _with_parts(lane.body, names, {lane.var: (lane.lo, lane.hi)}, names_of(program.kernel), outer)
    kernel = with_loop_replaced(program.kernel, lane.var, (replace(lane, body=body),))
    text = f"loop {loop.var}: in blocks, within which a sum has one range but at the edge"
    return program.with_(Note(loop.line, text, "triangular_blocks"), kernel=kernel)


def _with_parts(
    body: Sequence[Stmt], sums: set[str], around: ranges.Ranges, used_names: set[str], outer: Sequence[str]
) -> tuple[Stmt, ...]:
    """Return a body with sums in parts; the scalars ``outer`` keep their names."""

    def change(node: Stmt, _: object) -> Sequence[Stmt] | None:
        return _parts(node, around, used_names, outer) if isinstance(node, For) and node.var in sums else None

    return with_statements(body, change)


def _parts(inner: For, around: ranges.Ranges, used_names: set[str], outer: Sequence[str]) -> list[Stmt]:
    """Return the parts of a sum: that of all iterations of the loops around, and edges under conditions."""
    ends = [ranges.extreme(e, around, up=up) for e in (inner.lo, inner.hi) for up in (False, True)]
    first, start, end, last = (e for e in ends if e is not None)
    here, (*rows, lane) = Var(inner.var, INT), around
    tests = [here >= low for low in _lows(inner)] + [here < high for high in _highs(inner)]
    of_lanes = [t for t in tests if depends(t, frozenset({lane}))]
    of_rows = [t for t in tests if t not in of_lanes and depends(t, frozenset(rows))]
    body = inner.body
    for chosen in filter(None, (of_rows, of_lanes)):  # outside, a mask of lanes serves all rows
        body = (If(affine.conjunction(chosen), body, (), inner.line),)
    names = frozenset(around)
    edge = replace(inner, body=body, hint="border")
    parts: list[Stmt] = [replace(inner, lo=start, hi=end)]
    if depends(inner.lo, names):
        before = replace(edge, lo=first, hi=affine.extreme("min", (start, last)))
        parts.insert(0, renamed_copy(before, "_edge", used_names, outer))
    if depends(inner.hi, names):
        behind = replace(edge, lo=affine.extreme("max", (start, end)), hi=last)
        parts.append(renamed_copy(behind, "_edge", used_names, outer))
    return parts


# contractions


@dataclass(frozen=True)
class Contraction:
    """A loop of lanes around sums of scalars, the loop of rows directly around it, and the loops around both.

    ``sums`` are those whose ranges follow from rows or lanes, ``tests`` what must hold for it to run at all.
    """

    row: For
    lane: For
    around: tuple[For, ...]
    sums: tuple[For, ...] = ()
    tests: tuple[Expr, ...] = ()


def _nests(body: Sequence[Stmt], around: tuple[For, ...]) -> Iterator[Contraction]:
    """Yield each loop that is alone in another one."""
    for node in body:
        if isinstance(node, If):
            yield from _nests((*node.body, *node.orelse), around)
        if isinstance(node, For):
            inner = node.body[0] if len(node.body) == 1 else None
            if isinstance(inner, For):
                yield Contraction(node, inner, around)
            yield from _nests(node.body, (*around, node))


def _contraction(program: Program, nest: Contraction) -> Contraction | None:
    """Return a nest that can be a register tile once its sums have one range, None for any other."""
    if not all(_is_free(program, loop) for loop in (nest.row, nest.lane)):
        return None
    nest = _in_scalar(program, nest)
    row, lane, names = nest.row, nest.lane, frozenset({nest.row.var, nest.lane.var})
    sums, edges = [s for s in lane.body if isinstance(s, For)], tuple(_edges(lane, names))
    stores = [s for s in lane.body if isinstance(s, Store)]
    if not edges or not stores or any(stride(s, lane.var) != UNIT for s in stores):
        return None
    if any(isinstance(s, If) for s in lane.body) or any(s.hint or stop_flags(s) for s in sums):
        return None
    if any(depends(e, names) for s in sums if s not in edges for e in (s.lo, s.hi)):
        return None
    if not all(affine.moves_one_way(e, row.var) for e in (lane.lo, lane.hi)):
        return None
    if not all(_is_shared(s, row.var, lane.var) and _is_inside(program, nest, s) for s in sums):
        return None
    return replace(nest, sums=edges)


def _is_shared(inner: For, row: str, lane: str) -> bool:
    """Whether rows share a load of a sum and lanes another, and lanes along the sum would cost more."""
    if not all(isinstance(s, Assign) for s in inner.body):
        return False
    loads = loads_of(*inner.body)
    of_rows, of_lanes = ([e for e in loads if stride(e, var) != UNIFORM] for var in (row, lane))
    if len(of_rows) == len(loads) or len(of_lanes) == len(loads):
        return False
    across = sum(COSTS[stride(e, lane)] if e in of_rows else SHARED_LOAD_COST for e in loads)
    return across < sum(COSTS[stride(e, inner.var)] for e in loads)


def _is_inside(program: Program, nest: Contraction, inner: For) -> bool:
    """Whether what a sum reads exists in its edges too, where other rows and lanes are masked."""
    around = {loop.var: (loop.lo, loop.hi) for loop in (nest.row, nest.lane)}
    lo, hi = ranges.extreme(inner.lo, around, up=False), ranges.extreme(inner.hi, around, up=True)
    if lo is None or hi is None:
        return False
    loops = (*nest.around, nest.row, nest.lane, replace(inner, lo=lo, hi=hi))
    leaves = [leaf for leaf in program.model.leaves if inner.var in leaf.vars]
    return all(is_inside_too(program.model, leaf, loops) for leaf in leaves)


def _in_scalar(program: Program, nest: Contraction) -> Contraction:
    """Return a nest that sums in a scalar, not in an element, if no sum is empty: then the elements exist."""
    match nest.lane.body:
        case (For(body=(Store(op="+", buffer=buffer, index=index) as store,)) as inner,):
            pass
        case _:
            return nest
    found = reordered((nest.row, nest.lane, inner))
    if (
        found is None
        or inner.var in variables_of(*index)
        or loads_of(*index)
        or buffer in tensors_of(store.value)
    ):
        return nest
    row, lane, inner = found.loops
    leaf = next(leaf for leaf in program.model.leaves if inner.var in leaf.vars)
    tests = [] if always_runs(program.model, leaf, (*nest.around, *found.loops)) else found.tests
    type_ = Type(program.kernel.buffers[buffer].dtype)
    total = Var(unused(f"{buffer}_sum", names_of(program.kernel)), type_)
    kinds = [program.kinds[loop.var] for loop in nest.around]
    # a loop around that adds to the element too stays a sum, as in scalar_replacement
    partial = type_.dtype in WIDE and any((buffer, "+") in one.over for one in kinds)
    begin = Const(0.0, type_) if partial else Load(buffer, index, type_, store.line)
    body = (
        Assign(total.name, begin, "", store.line),
        replace(inner, body=(Assign(total.name, store.value, "+", store.line),)),
        Store(buffer, index, total, "+" if partial else "", store.line),
    )
    return replace(nest, row=row, lane=replace(lane, body=body), tests=tuple(tests))


def _in_tiles(program: Program, nest: Contraction) -> Program:
    """Return the program with blocks of rows and lanes in place of a nest."""
    row, lane, used_names = nest.row, nest.lane, names_of(program.kernel)
    scalars = [s.name for s in statements(lane.body) if isinstance(s, Assign)]
    used_names |= {*scalars}
    size_of_row, size_of_lane = Const(TILE_ROWS, INT), Const(TILE_LANES, INT)
    row_outer, lane_outer = (unused(f"{loop.var}_outer", used_names) for loop in (row, lane))
    start = affine.simplified(row.lo + size_of_row * Var(row_outer, INT))
    rows = {row.var: (start, affine.extreme("min", (start + size_of_row, row.hi)))}
    first, last = (ranges.extreme(e, rows, up=up) for e, up in ((lane.lo, False), (lane.hi, True)))
    assert first is not None
    assert last is not None  # both are affine
    strip = affine.simplified(first + size_of_lane * Var(lane_outer, INT))
    lows = (lane.lo, strip) if depends(lane.lo, frozenset({row.var})) else (strip,)
    around = {
        **rows,
        lane.var: (affine.extreme("max", lows), affine.extreme("min", (strip + size_of_lane, lane.hi))),
    }
    body = _with_parts(lane.body, {s.var for s in nest.sums}, around, used_names, scalars)
    for loop in (lane, row):
        body = (replace(loop, lo=around[loop.var][0], hi=around[loop.var][1], body=body),)
    for var, count, size, loop in (
        (lane_outer, last - first, size_of_lane, lane),
        (row_outer, row.hi - row.lo, size_of_row, row),
    ):
        blocks = operate("ceil_div", affine.simplified(count), size)
        body = (replace(loop, var=var, lo=Const(0, INT), hi=blocks, body=body),)
    if nest.tests:
        body = (If(affine.conjunction(nest.tests), body, (), row.line),)
    kernel = with_loop_replaced(program.kernel, row.var, body)
    text = f"loops {row.var} and {lane.var}: in blocks, within which a sum has one range but at the edges"
    return program.with_(Note(row.line, text, "triangular_blocks"), kernel=kernel)
