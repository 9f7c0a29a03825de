"""Divide a triangle into blocks: in the lanes of a block a sum runs over one range, but at the edge.

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
lanes there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..analysis import affine, ranges
from ..analysis.polyhedra import scalar_owners
from ..analysis.strides import COSTS, UNIT, depends, stride
from ..ir.grammar import BOOL, INT, Expr, For, If, Op, Stmt, Store, Var, names_of, statements
from ..ir.note import Note
from ..ir.rewriter import with_statements
from ..ir.stops import stop_flags
from ..ir.uses import accesses_of, loads_of
from ..program import Program
from .index_set_splitting import renamed_copy
from .strip_mine import tiled, with_loop_replaced

LANES = 32
"""The iterations of a block: four vectors of AVX2, so that no sum waits for the one before."""


def triangular_blocks(program: Program) -> Program:
    """Return the program with loops in blocks in whose lanes sums have different ranges."""
    for loop in [s for s in statements(program.kernel.body) if isinstance(s, For)]:
        if loop.var not in program.frozen and _is_candidate(program, loop):
            program = _blocked(program, loop)
    return program


def _is_candidate(program: Program, loop: For) -> bool:
    """Whether the iterations of a loop would be lanes, if the sums in it had one range."""
    sums = list(_edges(loop))
    kind = program.kinds.get(loop.var)
    if not sums or loop.hint or stop_flags(loop) or kind is None or kind.name != "parallel":
        return False
    stores = [s for s in loop.body if isinstance(s, Store)]
    if loads_of(loop.lo, loop.hi):
        return False  # nothing is known of a block's last iteration
    if not stores or any(stride(s, loop.var) != UNIT for s in stores):
        return False
    for inner in sums:
        accesses = accesses_of(inner.body)
        along = [sum(COSTS[stride(a, var)] for a in accesses) for var in (loop.var, inner.var)]
        if along[0] >= along[1] or any(isinstance(s, (For, Store)) for s in statements(inner.body)):
            return False
    return True


def _edges(loop: For) -> Iterator[For]:
    """Yield the loops directly in a loop whose range follows from it."""
    for node in loop.body:
        if isinstance(node, For) and not node.hint and not stop_flags(node):
            ends = [affine.linear(e) for e in (*_lows(node), *_highs(node))]
            factors = {form.get(loop.var, 0) for form in ends if form is not None}
            if None not in ends and factors <= {-1, 0, 1} and factors != {0}:
                yield node


def _lows(loop: For) -> list[Expr]:
    return affine.operands("max", loop.lo)


def _highs(loop: For) -> list[Expr]:
    return affine.operands("min", loop.hi)


def _blocked(program: Program, loop: For) -> Program:
    names = {s.var for s in _edges(loop)}
    program, _ = tiled(program, loop, LANES)
    (lane,) = (s for s in statements(program.kernel.body) if isinstance(s, For) and s.var == loop.var)
    used = names_of(program.kernel)
    outer = [n for n, loops in scalar_owners(program.kernel).items() if not names & {*loops}]
    parts = {s.var: _parts(s, lane, used, outer) for s in lane.body if isinstance(s, For) and s.var in names}
    body = with_statements(lane.body, lambda node, _: parts.get(node.var) if isinstance(node, For) else None)
    kernel = with_loop_replaced(program.kernel, lane.var, (replace(lane, body=body),))
    text = f"loop {loop.var}: in blocks, within which a sum has one range but at the edge"
    return program.with_(Note(loop.line, text, "triangular_blocks"), kernel=kernel)


def _parts(inner: For, lane: For, used: set[str], outer: Sequence[str]) -> list[Stmt]:
    """Return the parts of a sum: the one that all lanes have, and those at the edges under conditions."""
    around = {lane.var: (lane.lo, lane.hi)}
    ends = [ranges.extreme(e, around, up=up) for e in (inner.lo, inner.hi) for up in (False, True)]
    first, start, end, last = (e for e in ends if e is not None)
    here, lanes = Var(inner.var, INT), frozenset(around)
    inside = Op("and", (here >= inner.lo, here < inner.hi), BOOL)
    edge = replace(inner, body=(If(inside, inner.body, (), inner.line),), hint="border")
    parts: list[Stmt] = [replace(inner, lo=start, hi=end)]
    if depends(inner.lo, lanes):
        before = replace(edge, lo=first, hi=affine.extreme("min", (start, last)))
        parts.insert(0, renamed_copy(before, "_edge", used, outer))
    if depends(inner.hi, lanes):
        behind = replace(edge, lo=affine.extreme("max", (start, end)), hi=last)
        parts.append(renamed_copy(behind, "_edge", used, outer))
    return parts
