"""Collapse two contiguous loops of a sum at run time, where the sizes of the call allow it."""

from __future__ import annotations

from collections.abc import Iterator

from ...analysis import affine
from ...analysis.strides import depends
from ...ir.grammar import Assign, Const, Expr, For, Load, Size, Var, children
from ..common.expressions import Expressions, Scope


def collapse_condition(outer: For, expressions: Expressions, scope: Scope) -> str | None:
    """Return the condition, in C, under which a loop and the one inside it can be collapsed, or None.

    With the outer variable at 0, the inner one runs through the elements of both loops in their order: the
    inner loop's axis follows the outer loop's, and has the length of the inner loop.
    """
    inner = outer.body[0] if len(outer.body) == 1 else None
    if not isinstance(inner, For) or not all(isinstance(s, Assign) for s in inner.body):
        return None
    zero = all(isinstance(f.lo, Const) and f.lo.value == 0 for f in (outer, inner))
    both = frozenset({outer.var, inner.var})
    if not zero or any(depends(f.hi, both) or _reads(f.hi) for f in (outer, inner)):
        return None
    conditions: dict[str, None] = {}
    for statement in inner.body:
        for load in _loads(statement.value, both) if isinstance(statement, Assign) else ():
            axis = None if load is None or expressions.axes(load) else _axis(load, outer.var, inner.var)
            if load is None or axis is None:
                return None
            if axis and inner.hi != Size(load.buffer, axis, inner.hi.type):
                size = expressions.size(load.buffer, axis)
                conditions[f"{size} == {expressions.scalar(inner.hi, scope)}"] = None
    return " && ".join(conditions) or "1"


def _loads(expr: Expr, names: frozenset[str]) -> Iterator[Load | None]:
    """Yield the loads of an expression; None where it reads one of the variables itself."""
    if isinstance(expr, Load):
        yield expr
        return
    if isinstance(expr, Var) and expr.name in names:
        yield None
    for child in children(expr):
        yield from _loads(child, names)


def _reads(expr: Expr) -> bool:
    return isinstance(expr, Load) or any(map(_reads, children(expr)))


def _axis(load: Load, outer: str, inner: str) -> int | None:
    """Return the inner variable's axis, after the outer one's; 0 where there is neither, None otherwise."""
    both = frozenset({outer, inner})
    steps = []
    for index in load.index:
        form = affine.linear(index) if depends(index, both) else {}
        if form is None:
            return None
        steps.append((form.get(outer, 0), form.get(inner, 0)))
    moving = [(axis, step) for axis, step in enumerate(steps) if any(step)]
    match moving:
        case []:
            return 0
        case [(first, (1, 0)), (second, (0, 1))] if second == first + 1:
            return second
    return None
