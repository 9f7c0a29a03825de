"""Translate the head of a for statement into loops whose variable goes up by one.

for i in range(n - 1, -1, -1):      for i in 0 .. n:    with n - 1 - i in place of i
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod

from ...core.errors import ArgumentValueError
from ..ir.grammar import (
    INT,
    Assign,
    Const,
    Expr,
    For,
    Load,
    OpenEnd,
    Stmt,
    Type,
    Var,
    walk,
)
from ..ir.uses import assigned_by, stored_by
from .access import count
from .desugar.nodes import WHILE, Unused
from .expressions import Expressions


class Loops(ABC):
    """Translates for statements.

    ``values`` are those of each scalar's assignments so far, and ``types`` the types that hold them. The
    types of ``known`` scalars are given. ``new`` gives a name that is not used.
    """

    def __init__(self, state: Expressions) -> None:
        self.state = state
        self.names = state.scopes.names
        self.values: dict[str, list[Expr]] = {}
        self.types: dict[str, Type] = {}
        self.known = frozenset(state.variables)
        self.new = Unused({*state.scopes.kinds, *(n.id for n in state.scopes.names)}).new

    @abstractmethod
    def block(self, body: list[ast.stmt]) -> tuple[Stmt, ...]:
        """Return the statements of a body."""

    def loop(self, node: ast.For) -> list[Stmt]:
        """Return the loop nest of a for statement."""
        assert isinstance(node.iter, ast.Call)
        assert isinstance(node.iter.func, ast.Name)
        word = node.iter.func.id
        if word == "grid":
            return self.grid(node, node.iter.args[0])
        assert isinstance(node.target, ast.Name)
        if word == WHILE:
            name = self.names[node.target]
            self.state.variables[name] = INT
            return self.nest(node, [(name, Const(0, INT), OpenEnd(name))], "")
        ends = [self.bound(item, node) for item in node.iter.args]
        lo, hi, step = (
            (Const(0, INT), ends[0], Const(1, INT)) if len(ends) == 1 else (*ends, Const(1, INT))[:3]
        )
        if isinstance(step, Const) and step.value == 0:
            rule = "the step of a range must not be 0"
            self.state.fail(rule, node, ast.unparse(node.iter), kind=ArgumentValueError)
        name, hint = self.names[node.target], "" if word == "range" else word
        if step == Const(1, INT):
            self.state.variables[name] = INT
            self.state.natural |= {name} if self.state.is_natural(lo) else set()
            self.state.ranges.append((Var(name, INT), lo, hi))
            return self.nest(node, [(name, lo, hi)], hint)
        before, (lo, hi, step) = self.snapshot(node, [lo, hi, step])
        times = _times(lo, hi, step)
        self.state.natural.add(name)
        value = self.state.bindings[name] = lo + step * Var(name, INT)
        if isinstance(step, Const):
            one = Const(1, INT)
            down = (hi + one, lo + one)
            self.state.ranges.append((value, *((lo, hi) if step.value > 0 else down)))
        return [*before, *self.nest(node, [(name, Const(0, INT), times)], hint)]

    def grid(self, node: ast.For, extents: ast.expr) -> list[Stmt]:
        """Return the nest of a loop over ``grid``, with a name for each axis or one for all of them."""
        sizes = self.state.tuple_of(extents)
        if sizes is None:
            hint = f"write grid(({ast.unparse(extents)},))"
            self.state.fail("grid takes a tuple of sizes", node, ast.unparse(extents), hint)
        ends = [self.whole(size, size_text(extents, k), node) for k, size in enumerate(sizes)]
        if isinstance(node.target, ast.Name):
            base = self.names[node.target]
            names = [self.new(f"{base}_{k}") for k in range(len(ends))]
            self.state.tuples[base] = tuple(Var(name, INT) for name in names)
        else:
            assert isinstance(node.target, (ast.Tuple, ast.List))
            names = [self.names[item] for item in node.target.elts if isinstance(item, ast.Name)]
        if len(names) != len(ends):
            rule = f"this grid has {count(ends, 'dimension')}"
            self.state.fail(rule, node, count(names, "loop variable"), kind=ArgumentValueError)
        self.state.variables.update(dict.fromkeys(names, INT))
        self.state.natural.update(names)
        zero = Const(0, INT)
        self.state.ranges += [(Var(name, INT), zero, end) for name, end in zip(names, ends, strict=True)]
        return self.nest(node, [(name, zero, end) for name, end in zip(names, ends, strict=True)], "")

    def nest(self, node: ast.For, heads: list[tuple[str, Expr, Expr]], hint: str) -> list[Stmt]:
        """Return loops around the body. A bound that the body changes is saved in a variable before them."""
        body = self.block(node.body)
        before: list[Stmt] = []
        for k, (name, lo, hi) in reversed(list(enumerate(heads))):
            fixed = [end if not _changes(body, end) else self.saved(end, before, node) for end in (lo, hi)]
            heads[k] = (name, fixed[0], fixed[1])
        for name, lo, hi in reversed(heads):
            body = (For(name, lo, hi, body, node.lineno, hint),)
        return [*before, *body]

    def snapshot(self, node: ast.For, ends: list[Expr]) -> tuple[list[Stmt], list[Expr]]:
        """Return assignments before the loop, and the ends; an end that reads tensors or scalars is saved."""
        before: list[Stmt] = []
        return before, [end if self.is_fixed(end) else self.saved(end, before, node) for end in ends]

    def is_fixed(self, end: Expr) -> bool:
        """Whether an expression reads only sizes, attributes and loop variables."""
        kinds = self.state.scopes.kinds
        return not any(
            isinstance(e, Load) or (isinstance(e, Var) and kinds.get(e.name, "loop") == "scalar")
            for e in walk(end)
        )

    def saved(self, end: Expr, before: list[Stmt], node: ast.For) -> Expr:
        """Return a new variable, to which ``before`` assigns the expression ahead of the loop."""
        name = self.new("end")
        before.append(Assign(name, end, line=node.lineno))
        return Var(name, end.type)

    def bound(self, item: ast.expr, node: ast.For) -> Expr:
        """Return an argument of range as an int64."""
        return self.whole(self.state.expression(item), item, node)

    def whole(self, value: Expr, item: ast.expr | None, node: ast.For) -> Expr:
        """Return a bound as an int64."""
        return self.state.integer(value, "a loop's bound", item, node)


def _times(lo: Expr, hi: Expr, step: Expr) -> Expr:
    """Return how many iterations ``range(lo, hi, step)`` has; it is negative if there are none."""
    if not isinstance(step, Const):
        return -((lo - hi) // step)
    size = Const(abs(int(step.value)), INT)
    distance = hi - lo if step.value > 0 else lo - hi
    return (distance + (size - 1)) // size


def size_text(sizes: ast.expr, position: int) -> ast.expr | None:
    """Return what the author wrote for one of several sizes, or None if the sizes are not a literal."""
    return sizes.elts[position] if isinstance(sizes, (ast.Tuple, ast.List)) else None


def _changes(body: tuple[Stmt, ...], end: Expr) -> bool:
    """Whether a loop's body changes a scalar or a tensor that a bound reads."""
    changed = assigned_by(body)
    stored = stored_by(body)
    return any(
        (isinstance(e, Var) and e.name in changed) or (isinstance(e, Load) and e.buffer in stored)
        for e in walk(end)
    )
