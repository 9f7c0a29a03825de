"""Unroll-and-jam: several rows are added to a vector of sums, which is loaded once for all of them.

Each element is added to in the order of the rows, so the result is the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from ...analysis.cost import HEAVY
from ...analysis.strides import depends
from ...ir.grammar import (
    INT,
    Assign,
    Const,
    Expr,
    For,
    Load,
    Op,
    Stmt,
    Store,
    Type,
    Var,
    names_of,
    statements,
    unused,
    walk,
)
from ...ir.plan import Plan
from ...ir.rewriter import substitute
from ...ir.uses import loads_of
from ..common.expressions import Expressions
from .optimisations import is_on

ROWS = 8
"""Rows at once: as many streams as a processor's prefetcher follows beside the stores."""
ROWS_READ_AGAIN = 2
"""Rows at once if they are read a second time: a cache has to hold them until then."""


class Jammed(NamedTuple):
    """The body of a loop for ``rows`` of its iterations."""

    rows: int
    body: tuple[Stmt, ...]


def jammed(node: For, plan: Plan, expressions: Expressions) -> Jammed | None:
    """Return the body for several iterations, or None if a loop does more than add rows to sums."""
    inner = [s for s in node.body if isinstance(s, For)]
    inside = [s for s in statements(node.body) if not isinstance(s, For)]
    stores = [s for s in inside if isinstance(s, Store)]
    simple = all(isinstance(s, Assign) or s in inner for s in node.body)
    if (
        not is_on("unroll_and_jam")
        or not stores
        or not simple
        or not all(isinstance(s, (Assign, Store)) for s in inside)
    ):
        return None
    if not all(loop.var in plan.vector and _is_fixed(loop, node) for loop in inner):
        return None
    written = {s.buffer for s in stores}
    if len(written) < len(stores):
        return None  # a row's second addition would come after the next row's first
    if not all(_adds(s, node, expressions) for s in stores) or not all(
        _is_light(s, written, expressions) for s in inside
    ):
        return None
    first = {s.name: s for s in reversed(inside) if isinstance(s, Assign)}
    private = {name for name, _ in plan.private.get(node.var, ())}
    if any(s.op or name in private for name, s in first.items()):
        return None  # it lives longer than an iteration
    rows = ROWS if len(inside) == 1 else ROWS_READ_AGAIN
    taken, own = names_of(expressions.kernel), list(first)[::-1]
    names = [{n: unused(n, taken) if row else n for n in own} for row in range(rows)]
    return Jammed(rows, _joined(node.body, node.var, names, expressions))


def _is_fixed(loop: For, around: For) -> bool:
    plain = not any(isinstance(s, For) for s in loop.body)
    return plain and not any(depends(e, frozenset({around.var})) for e in (loop.lo, loop.hi))


def _adds(store: Store, node: For, expressions: Expressions) -> bool:
    kind = expressions.kernel.buffers[store.buffer].dtype
    fixed = not any(depends(e, frozenset({node.var})) for e in store.index)
    return store.op == "+" and kind in ("float32", "float64") and fixed and not expressions.axes(store)


def _is_light(node: Stmt, written: set[str], expressions: Expressions) -> bool:
    loads = loads_of(node)
    slow = any(isinstance(e, Op) and (e.name in HEAVY or e.name == "select") for e in walk(node))
    return not slow and not any(expressions.axes(e) or e.buffer in written for e in loads)


def _joined(
    body: tuple[Stmt, ...], var: str, names: list[dict[str, str]], expressions: Expressions
) -> tuple[Stmt, ...]:
    """Return a body with each statement once for each row, or with a store of all rows' sum."""
    result: list[Stmt] = []
    for node in body:
        match node:
            case For():
                result.append(replace(node, body=_joined(node.body, var, names, expressions)))
            case Assign(name=name, value=value):
                result += [
                    replace(node, name=own[name], value=_of_row(value, var, row, own))
                    for row, own in enumerate(names)
                ]
            case Store(buffer=buffer, index=index, value=value, line=line):
                kind = Type(expressions.kernel.buffers[buffer].dtype)
                total: Expr = Load(buffer, index, kind, line)
                for row, own in enumerate(names):
                    total = Op("+", (total, _of_row(value, var, row, own)), kind)
                result.append(replace(node, value=total, op=""))
    return tuple(result)


def _of_row(value: Expr, var: str, row: int, own: Mapping[str, str]) -> Expr:
    here = Op("+", (Var(var, INT), Const(row, INT)), INT)
    kinds = {e.name: e.type for e in walk(value) if isinstance(e, Var)}
    scalars: dict[str, Expr] = {n: Var(own[n], kind) for n, kind in kinds.items() if n in own}
    result: Expr = substitute(value, {var: here, **scalars})
    return result
