"""Loop coalescing: two loops over contiguous elements run as one, where the sizes of the call allow it.

The outer loop then takes a step of several rows. Its variable stays at the first of them, and the inner loop
runs through the elements of all: its axis follows the outer loop's and has its length, so the addresses are
the same.

Source: C. D. Polychronopoulos, "Loop Coalescing: A Compiler Transformation for Parallel Machines", 1987.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from ...analysis import affine
from ...analysis.strides import depends
from ...ir.grammar import (
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
from ...ir.plan import Plan
from ...ir.uses import assigned_by, loads_of, variables_of
from ..common.c_text import identifier
from ..common.expressions import Expressions, Scope
from .optimisations import is_on


@dataclass(frozen=True)
class Coalesced:
    """The step of an outer loop: the C variable, when it may be more than one, and the length of a row.

    ``body`` is the outer loop's, in which the inner loop runs through all rows of a step.
    """

    name: str
    condition: str
    length: str
    body: tuple[Stmt, ...]

    def scope(self, scope: Scope) -> Scope:
        """Return a scope for ``body``."""
        return scope.with_names({_ROWS: self.name})

    def start(self, left: str) -> str:
        """Return the line that sets the step, where so many rows are left."""
        return f"{self.name} = {self.condition} ? polyop_rows({left}, {self.length}) : 1;"


_ROWS = "rows of a step"  # no author's name


def of_sum(outer: For, expressions: Expressions, scope: Scope) -> Coalesced | None:
    """Return the step of a loop around another one that only computes scalars; None if it has none."""
    inner = outer.body[0] if len(outer.body) == 1 else None
    if not isinstance(inner, For) or not all(isinstance(s, Assign) for s in inner.body):
        return None
    return _rows(outer, inner, expressions, scope)


def of_lanes(
    outer: For, plan: Plan, owners: Mapping[str, tuple[str, ...]], expressions: Expressions
) -> Coalesced | None:
    """Return the step of a loop of threads around lanes that store an element each; None if it has none."""
    inner = next((loop for loop in perfect(outer) if loop.var in plan.vector), None)
    if inner is None or inner is outer:
        return None
    reduced = {name for rows in plan.private.values() for name, _ in rows}
    own = any({outer.var, inner.var} & {*loops} for loops in owners.values())
    stores = [s for s in statements(inner.body) if isinstance(s, Store)]
    if own or reduced & assigned_by(inner.body) or not stores:
        return None
    if not all(_axis(store, outer.var, inner.var) for store in stores):
        return None
    rows = _rows(outer, inner, expressions, Scope())
    several = f"{expressions.scalar(outer.hi, Scope())} > 1"
    return rows and replace(rows, condition=f"{several} && {rows.condition}")


def _rows(outer: For, inner: For, expressions: Expressions, scope: Scope) -> Coalesced | None:
    nest = perfect(outer)
    around = nest[: nest.index(inner)]
    variables = frozenset(loop.var for loop in (*around, inner))
    zero = all(isinstance(loop.lo, Const) and loop.lo.value == 0 for loop in (outer, inner))
    if not is_on("coalesce") or not zero or depends(inner.hi, variables) or loads_of(inner.hi):
        return None
    if any(depends(end, variables) or loads_of(end) for loop in around for end in (loop.lo, loop.hi)):
        return None
    both = frozenset({outer.var, inner.var})
    ends = _ends_that_move(inner, outer.var, expressions.kernel.attributes.keys())
    if ends is None:
        return None
    conditions = dict.fromkeys(_same_in_all_rows(end, outer, expressions, scope) for end in ends)
    for access in _accesses(inner.body, both, frozenset(ends)):
        axis = None if access is None or expressions.axes(access) else _axis(access, outer.var, inner.var)
        if access is None or axis is None:
            return None
        if axis and inner.hi != Size(access.buffer, axis, inner.hi.type):
            size = expressions.size(access.buffer, axis)
            conditions[f"{size} == {expressions.scalar(inner.hi, scope)}"] = None
    length = Op("*", (Var(_ROWS, INT), inner.hi), INT)
    body = _with_length(outer.body, inner, length)
    condition = " && ".join(conditions) or "1"
    return Coalesced(f"{identifier(outer.var)}_rows", condition, expressions.scalar(inner.hi, scope), body)


def _with_length(body: tuple[Stmt, ...], inner: For, length: Expr) -> tuple[Stmt, ...]:
    """Return the body of a perfect nest in which the inner loop has another end."""
    (node,) = body
    assert isinstance(node, For)
    if node is inner:
        return (replace(inner, hi=length),)
    return (replace(node, body=_with_length(node.body, inner, length)),)


def _ends_that_move(inner: For, outer: str, known: AbstractSet[str]) -> list[Expr] | None:
    """Return the ends of loops inside that depend on the outer variable; None if it cannot be said when.

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


def _same_in_all_rows(end: Expr, outer: For, expressions: Expressions, scope: Scope) -> str:
    """Return the condition, in C, that an end is the same in the first row and in the last."""
    last = f"({expressions.scalar(outer.hi, scope)} - 1)"
    return " == ".join(expressions.scalar(end, scope.with_names({outer.var: at})) for at in ("0", last))


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
