"""Change kernels: rewrite expressions, replace statements, visit statements with what is around them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .grammar import (
    INT,
    Assign,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Op,
    OpenEnd,
    Size,
    Stmt,
    Store,
    Var,
    walk,
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a statement stands.

    ``around``: the loops and conditions around it, outermost first. It is number ``number`` of ``body``.
    """

    around: tuple[For | If, ...]
    body: Sequence[Stmt]
    number: int

    @property
    def loops(self) -> tuple[For, ...]:
        """The loops around it."""
        return tuple(node for node in self.around if isinstance(node, For))

    @property
    def before(self) -> Sequence[Stmt]:
        """The statements before it in its body."""
        return self.body[: self.number]


def bodies(node: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """Return the bodies of a statement: one of a loop, two of a condition, none of others."""
    match node:
        case For(body=body):
            return (body,)
        case If(body=body, orelse=orelse):
            return (body, orelse)
    return ()


def with_bodies(node: Stmt, change: Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]]) -> Stmt:
    """Return a statement with ``change`` applied to each of its bodies."""
    match node:
        case For():
            return replace(node, body=change(node.body))
        case If():
            return replace(node, body=change(node.body), orelse=change(node.orelse))
    return node


def with_statements(
    body: Sequence[Stmt],
    change: Callable[[Stmt, Place], Sequence[Stmt] | None],
    around: tuple[For | If, ...] = (),
) -> tuple[Stmt, ...]:
    """Return a body with some statements replaced, outer ones first.

    ``change`` gets each statement and its place, and returns the replacement. None keeps the statement and
    visits its bodies.
    """
    result: list[Stmt] = []
    for number, node in enumerate(body):
        made = change(node, Place(around, body, number))
        if made is None and isinstance(node, (For, If)):
            inside = functools.partial(with_statements, change=change, around=(*around, node))
            made = (with_bodies(node, inside),)
        result += (node,) if made is None else made
    return tuple(result)


def with_replaced(node: Stmt, others: Mapping[int, Stmt]) -> Stmt:
    """Return a statement with some inside it replaced; ``others`` maps ``id(old)`` to the new one."""
    (changed,) = with_statements((node,), lambda one, _: (others[id(one)],) if id(one) in others else None)
    return changed


def placed(body: Sequence[Stmt], around: tuple[For | If, ...] = ()) -> Iterator[tuple[Stmt, Place]]:
    """Yield every statement of a body with its place, outer ones first."""
    for number, node in enumerate(body):
        yield node, Place(around, body, number)
        if isinstance(node, (For, If)):
            for part in bodies(node):
                yield from placed(part, (*around, node))


def nested(loops: Sequence[For], *body: Stmt) -> Stmt:
    """Return loops around statements, outermost first; without loops, the only statement."""
    for loop in reversed(loops):
        body = (replace(loop, body=body),)
    (node,) = body
    return node


def loops_over(names: Sequence[str], shape: Sequence[Expr], line: int) -> list[For]:
    """Return loops over all elements of a shape, outermost first, with these variables and no bodies."""
    return [For(name, Const(0, INT), size, (), line) for name, size in zip(names, shape, strict=True)]


def rewrite(node: Any, change: Callable[[Expr], Expr]) -> Any:
    """Return an expression or statement with ``change`` applied to each expression, innermost first."""
    match node:
        case Load(index=index):
            return change(replace(node, index=tuple(rewrite(i, change) for i in index)))
        case Op(args=args):
            return change(replace(node, args=tuple(rewrite(a, change) for a in args)))
        case Const() | Var() | Size() | OpenEnd():
            return change(node)
        case For(lo=lo, hi=hi, body=body):
            inner = tuple(rewrite(s, change) for s in body)
            return replace(node, lo=rewrite(lo, change), hi=rewrite(hi, change), body=inner)
        case If(condition=condition, body=body, orelse=orelse):
            return replace(
                node,
                condition=rewrite(condition, change),
                body=tuple(rewrite(s, change) for s in body),
                orelse=tuple(rewrite(s, change) for s in orelse),
            )
        case Store(index=index, value=value):
            return replace(node, index=tuple(rewrite(i, change) for i in index), value=rewrite(value, change))
        case Assign(value=value):
            return replace(node, value=rewrite(value, change))
    raise TypeError(type(node).__name__)


def substitute(node: Any, values: Mapping[str, Expr]) -> Any:
    """Return an expression or statement with reads of variables replaced. Names that it binds stay.

    >>> from polyop.loops.ir.grammar import INT, Const
    >>> substitute(Var("i", INT), {"i": Const(3, INT)}).value
    3
    """
    return rewrite(node, lambda e: values.get(e.name, e) if isinstance(e, Var) else e)


def with_places(body: Sequence[Stmt], place: Callable[[Var | Load], Expr]) -> tuple[Stmt, ...]:
    """Return a body with scalars and elements replaced, where they are read and where they are set.

    ``place`` returns the replacement, or its argument.

    >>> from polyop.loops.ir.grammar import INT, Const, Type
    >>> number = Const(1.0, Type("float32"))
    >>> (store,) = with_places([Assign("t", number)], lambda e: Load("row", (Var("j", INT),), e.type))
    >>> store.buffer, store.index[0].name, store.value.value
    ('row', 'j', 1.0)
    """

    def read(expr: Expr) -> Expr:
        return place(expr) if isinstance(expr, (Var, Load)) else expr

    def stored(node: Store | Assign) -> Sequence[Stmt]:
        match place(node.target):
            case Load(buffer=buffer, index=index):
                return (Store(buffer, index, node.value, node.op, node.line),)
            case Var(name=name):
                return (Assign(name, node.value, node.op, node.line),)
        raise TypeError(f"a statement cannot set {place(node.target)}")

    return map_body([rewrite(node, read) for node in body], stored)


def with_buffers(node: Any, names: Mapping[str, str]) -> Any:
    """Return a statement with renamed buffers: ``names`` maps old names to new ones."""

    def size(expr: Expr) -> Expr:
        return replace(expr, buffer=names.get(expr.buffer, expr.buffer)) if isinstance(expr, Size) else expr

    def place(expr: Var | Load) -> Expr:
        return replace(expr, buffer=names.get(expr.buffer, expr.buffer)) if isinstance(expr, Load) else expr

    return with_places((rewrite(node, size),), place)[0] if names else node


def map_body(
    body: Sequence[Stmt], change: Callable[[Store | Assign], Sequence[Stmt]], *, drop_empty: bool = False
) -> tuple[Stmt, ...]:
    """Return a body with each Store and Assign replaced by the statements that ``change`` returns.

    ``drop_empty``: loops and conditions with nothing inside are left out.
    """
    result: list[Stmt] = []
    for node in body:
        if isinstance(node, (Store, Assign)):
            result += change(node)
            continue
        inside = with_bodies(node, functools.partial(map_body, change=change, drop_empty=drop_empty))
        result += [inside] if any(bodies(inside)) or not drop_empty else []
    return tuple(result)


def with_sizes(kernel: Kernel, change: Callable[[Expr], Expr]) -> Kernel:
    """Return the kernel with ``change`` applied to what it demands of sizes.

    A demand about a tensor that is absent is left out: the kernel from which this one was derived checks it.
    """
    demands = []
    for demand in kernel.demands:
        condition = rewrite(demand.condition, change)
        names = {e.buffer for e in walk(condition) if isinstance(e, Size)}
        if all(name in kernel.buffers and not kernel.buffers[name].absent for name in names):
            demands.append(replace(demand, condition=condition))
    return replace(kernel, demands=tuple(demands))
