"""Compute in narrow types what is held in wider ones only to be converted: the last step of the front end.

    y[i] = float32(x[i] if x[i] > 0 else slope)     select of float64, because slope is one
           x[i] if x[i] > 0 else float32(slope)     the same number

A scalar is narrow if it is read in no other way. A conversion to a wider type and back changes nothing, and a
choice may be converted after it or before it. Behind this step no type has another that it counts as.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..ir.grammar import (
    Assign,
    Const,
    Expr,
    Op,
    Stmt,
    Store,
    Type,
    Var,
    children,
    statements,
    walk,
)
from ..ir.reductions import reduction
from ..ir.rewriter import map_body, rewrite
from ..ir.types import cast, join, kind


def narrowed(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return a body that computes the same, in plain types."""
    if not any(e.type.counts for node in statements(body) for e in walk(node)):
        return body
    body = tuple(rewrite(node, _converted) for node in body)
    types = _narrow_scalars(body)

    def scalar(expr: Expr) -> Expr:
        if isinstance(expr, Var) and expr.name in types:
            return Op("cast", (Var(expr.name, types[expr.name]),), expr.type)
        return _converted(expr)

    def assignment(node: Store | Assign) -> Sequence[Stmt]:
        if not isinstance(node, Assign) or node.name not in types:
            return (node,)
        to = types[node.name]
        return (reduction(replace(node, value=_plain(narrow(node.value, to))), to),)

    body = map_body([rewrite(node, scalar) for node in body], assignment)
    return tuple(rewrite(node, lambda e: replace(e, type=_bare(e.type))) for node in body)


def narrow(value: Expr, to: Type) -> Expr:
    """Return the value converted to a type, without the wider type in which it was held."""
    match value:
        case Op(name="select", args=(condition, then, otherwise)) if value.type.counts:
            return Op("select", (condition, narrow(then, to), narrow(otherwise, to)), to)
        case Op(name="cast", args=(inner,)) if _holds(value.type, inner.type):
            return narrow(inner, to)
        case Const():
            return cast(value, to)
    return value if value.type.dtype == to.dtype else Op("cast", (value,), to)


def _converted(expr: Expr) -> Expr:
    if isinstance(expr, Op) and expr.name == "cast" and expr.args[0].type.counts and not expr.type.counts:
        return narrow(expr.args[0], expr.type)
    return expr


def _holds(wide: Type, of: Type) -> bool:
    """Whether each number of a type is one of a wider type."""
    if kind(wide) == "f" and of.dtype in ("int64", "uint64"):
        return False
    return wide.dtype == of.dtype or join(Type(wide.dtype), Type(of.dtype)).dtype == wide.dtype


def _narrow_scalars(body: tuple[Stmt, ...]) -> dict[str, Type]:
    """Return the types of the scalars of which only the number in a narrow type is read."""
    nodes = list(statements(body))
    types = {
        node.name: Type(node.type.counts) for node in nodes if isinstance(node, Assign) and node.type.counts
    }
    before = -1
    while before != len(types):
        before = len(types)
        for node in nodes:
            for name in list(_read_as_held(node, types)):
                types.pop(name, None)
    return types


def _read_as_held(node: Stmt, types: dict[str, Type]) -> Iterator[str]:
    if isinstance(node, Assign) and node.name in types:
        if node.op:
            yield node.name
        yield from _held(node.value, types[node.name].dtype)
        return
    for expr in children(node):
        yield from _held(expr, "")


def _held(expr: Expr, to: str) -> Iterator[str]:
    """Yield the scalars that an expression needs as they are held, where it is converted to ``to``."""
    match expr:
        case Var():
            if expr.type.counts and expr.type.counts != to:
                yield expr.name
        case Op(name="select", args=(condition, *arms)) if expr.type.counts:
            yield from _held(condition, "")
            for arm in arms:
                yield from _held(arm, to)
        case Op(name="cast", args=(inner,)):
            yield from _held(inner, to if expr.type.counts else expr.type.dtype)
        case _:
            for child in children(expr):
                yield from _held(child, "")


def _bare(of: Type) -> Type:
    return Type(of.dtype) if of.counts else of


def _plain(value: Expr) -> Expr:
    result: Expr = rewrite(value, lambda e: replace(e, type=_bare(e.type)))
    return result
