"""Loop coalescing: two loops over contiguous elements run as one, where the sizes of the call allow it.

Each outer iteration then covers several rows, and its variable is the first. The inner loop runs over the
elements of all of them. Its axis directly follows the outer one and is as long as it, so the addresses are
the same.

Source: C. D. Polychronopoulos, "Loop Coalescing: A Compiler Transformation for Parallel Machines", 1987.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace

from ..analysis import affine
from ..analysis.strides import depends
from ..ir.grammar import (
    INT,
    Assign,
    Const,
    Expr,
    For,
    If,
    Load,
    Op,
    Size,
    Stmt,
    Store,
    Var,
    children,
    perfect,
    statements,
)
from ..ir.plan import Coalesced
from ..ir.rewriter import substitute
from ..ir.uses import assigned_by, loads_of, variables_of
from ..program import Program
from .tile_body import from_panels, without_dots
from .vector_loops import tiles


def coalesce(program: Program) -> Program:
    """Mark pairs of loops that may run as one: in the sums of tiles, and loops of threads around lanes."""
    plan = program.plan
    found: dict[str, Coalesced | None] = {}
    for _, lane in tiles(program):
        tile = plan.tiles[lane.var]
        for node in statements(from_panels(without_dots(lane.body, tile), tile)):
            if isinstance(node, For):
                found[node.var] = _of_sum(program, node)
    for node in statements(program.kernel.body):
        if isinstance(node, For) and node.var in plan.threads:
            outer = plan.threads_loops(node)[-1]
            found[outer.var] = _of_lanes(program, outer)
    rows = {var: coalesced for var, coalesced in found.items() if coalesced is not None}
    return program.with_(plan=replace(plan, coalesced=rows))


def _of_sum(program: Program, outer: For) -> Coalesced | None:
    """Return how a loop coalesces with its only inner loop, which just assigns scalars, or None."""
    inner = outer.body[0] if len(outer.body) == 1 else None
    if not isinstance(inner, For) or not all(isinstance(s, Assign) for s in inner.body):
        return None
    return _coalesced(program, outer, inner)


def _of_lanes(program: Program, outer: For) -> Coalesced | None:
    """Return how a loop of threads coalesces with the lanes in it, which store an element each, or None."""
    plan = program.plan
    inner = next((loop for loop in perfect(outer) if loop.var in plan.vector), None)
    if inner is None or inner is outer:
        return None
    reduced = {name for rows in plan.private.values() for name, _ in rows}
    own = any({outer.var, inner.var} & {*loops} for loops in program.owners.values())
    stores = [s for s in statements(inner.body) if isinstance(s, Store)]
    if own or reduced & assigned_by(inner.body) or not stores:
        return None
    if not all(_axis(store, outer.var, inner.var) for store in stores):
        return None
    return _coalesced(program, outer, inner)


def _coalesced(program: Program, outer: For, inner: For) -> Coalesced | None:
    nest = perfect(outer)
    around = nest[: nest.index(inner)]
    variables = frozenset(loop.var for loop in (*around, inner))
    zero = all(isinstance(loop.lo, Const) and loop.lo.value == 0 for loop in (outer, inner))
    if not zero or depends(inner.hi, variables) or loads_of(inner.hi):
        return None
    if any(depends(end, variables) or loads_of(end) for loop in around for end in (loop.lo, loop.hi)):
        return None
    both = frozenset({outer.var, inner.var})
    ends = _ends_that_move(inner, outer.var, program.kernel.attributes.keys())
    if ends is None:
        return None
    equal = dict.fromkeys(_in_first_and_last_row(end, outer) for end in ends)
    for access in _accesses(inner.body, both, frozenset(ends)):
        checked = access is None or program.bounds.axes(access)
        axis = None if access is None or checked else _axis(access, outer.var, inner.var)
        if access is None or axis is None:
            return None
        if axis and inner.hi != Size(access.buffer, axis, inner.hi.type):
            equal[Size(access.buffer, axis, INT), inner.hi] = None
    return Coalesced(inner.var, inner.hi, tuple(equal))


def _ends_that_move(inner: For, outer: str, known: AbstractSet[str]) -> list[Expr] | None:
    """Return the ends of loops inside that depend on the outer variable; None if one of them is not monotone.

    Each grows or falls with the variable all the way, so it is the same in all rows if it is in the first and
    last. It has no other variable but ``known`` ones, and is asked for outside of all loops.
    """
    loops = [loop for loop in statements(inner.body) if isinstance(loop, For)]
    ends = [end for loop in loops for end in (loop.lo, loop.hi) if depends(end, frozenset({outer}))]
    plain = all(variables_of(end) <= known | {outer} and not loads_of(end) for end in ends)
    return ends if plain and all(_direction(end, outer) is not None for end in ends) else None


def _direction(expr: Expr, var: str) -> int | None:
    """Return 1 or -1 if an expression grows or falls with a variable all the way, 0 if it stays, or None."""
    if not depends(expr, frozenset({var})):
        return 0
    if isinstance(expr, Op) and expr.name in ("max", "min"):
        directions = {_direction(arg, var) for arg in expr.args} - {0}
        return directions.pop() if len(directions) == 1 else None
    form = affine.linear_with_terms(expr)
    step = 0 if form is None else form[0].get(var, 0)
    return (1 if step > 0 else -1) if step else None


def _in_first_and_last_row(end: Expr, outer: For) -> tuple[Expr, Expr]:
    last = Op("-", (outer.hi, Const(1, INT)), INT)
    first, after = (substitute(end, {outer.var: at}) for at in (Const(0, INT), last))
    return first, after


def _accesses(
    body: tuple[Stmt, ...], names: AbstractSet[str], ends: AbstractSet[Expr]
) -> Iterator[Load | Store | None]:
    """Yield the accesses of a body; None where it reads a variable itself, but not in these ends of loops."""
    for node in body:
        match node:
            case Assign(value=value):
                yield from _loads(value, names)
            case Store(value=value):
                yield node
                yield from _loads(value, names)
            case If(condition=condition, body=inside, orelse=orelse):
                yield from _loads(condition, names)
                yield from _accesses((*inside, *orelse), names, ends)
            case For(lo=lo, hi=hi, body=inside):
                for end in {lo, hi} - ends:
                    yield from _loads(end, names)
                yield from _accesses(inside, names, ends)
            case _:
                yield None


def _loads(expr: Expr, names: AbstractSet[str]) -> Iterator[Load | None]:
    """Yield the loads of an expression, whose indices :func:`_axis` looks at; None for a variable itself."""
    if isinstance(expr, Load):
        yield expr
        return
    if isinstance(expr, Var) and expr.name in names:
        yield None
    for child in children(expr):
        yield from _loads(child, names)


def _axis(access: Load | Store, outer: str, inner: str) -> int | None:
    """Return the inner variable's axis, after the outer one's; 0 where there is neither, None otherwise."""
    both = frozenset({outer, inner})
    steps = []
    for index in access.index:
        form = affine.linear_with_terms(index) if depends(index, both) else ({}, {})
        if form is None:
            return None
        steps.append((form[0].get(outer, 0), form[0].get(inner, 0)))
    moving = [(axis, step) for axis, step in enumerate(steps) if any(step)]
    match moving:
        case []:
            return 0
        case [(first, (1, 0)), (second, (0, 1))] if second == first + 1:
            return second
    return None
