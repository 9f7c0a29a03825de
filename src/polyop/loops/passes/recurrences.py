"""Find the loops whose sums are rescaled by a running maximum: those of an online softmax.

In terms of what the iteration finds, with the maximum ``m`` and a score ``s`` of the iteration's own,

    m = max(m, s)                                a[k] = a[k] * exp(m - max(m, s)) + t(exp(s - max(m, s)))

for each sum ``a``, a scalar or elements of a tensor. ``t`` is linear: a product of the exponential and of
what depends on no other iteration. How the author divides this into statements makes no difference: values of
scalars are expressed by what the iteration finds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..analysis.equality import is_same
from ..analysis.strides import depends
from ..ir.grammar import (
    INT,
    Assign,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Op,
    Stmt,
    Store,
    Type,
    Var,
    perfect,
    statements,
    walk,
)
from ..ir.rewriter import rewrite
from ..ir.stops import stop_flags
from ..ir.types import NARROW
from ..ir.uses import assigned_by, scalars_beside, stored_by, variables_of

WEIGHT = "exp(score - top)"
"""The name that stands for the weight of an iteration in the term of a sum; no variable has it."""


@dataclass(frozen=True)
class Sum:
    """A sum: the loops around it in an iteration, its element, and what an iteration adds to it."""

    target: Var | Load
    term: Expr
    loops: tuple[For, ...]
    line: int


@dataclass(frozen=True)
class Recurrence:
    """A loop of rescaled sums.

    ``free`` are the statements that do not depend on other iterations, and ``kept`` their scalars that
    ``score`` and the terms of the sums read.
    """

    loop: For
    top: Var
    score: Expr
    weight: Expr
    sums: tuple[Sum, ...]
    free: tuple[Stmt, ...]
    kept: Mapping[str, Type]
    line: int


class _NoRecurrence(Exception):  # noqa: N818 - it ends a search, and is no error
    """The loop is not a recurrence of this kind."""


def recurrence(loop: For, kernel: Kernel) -> Recurrence | None:
    """Return the sums and the maximum of a loop of rescaled sums, or None for any other loop."""
    nodes = list(statements(loop.body))
    if not any(isinstance(e, Op) and e.name == "exp" for s in nodes for e in walk(s)):
        return None
    try:
        return _Reader(loop, kernel).read()
    except _NoRecurrence:
        return None


def _require(condition: object) -> None:
    """End the search unless a condition holds."""
    if not condition:
        raise _NoRecurrence


@dataclass
class _Update:
    """What an iteration leaves in a sum, by what it finds there."""

    target: Var | Load
    value: Expr
    loops: tuple[For, ...]
    line: int


@dataclass
class _Reader:
    """Reads the body of a loop once."""

    loop: For
    kernel: Kernel
    values: dict[str, Expr] = field(default_factory=dict)
    """By scalar that depends on other iterations, its value."""
    updates: dict[str, _Update] = field(default_factory=dict)
    free: list[Stmt] = field(default_factory=list)
    free_names: dict[str, Type] = field(default_factory=dict)
    used_names: set[str] = field(default_factory=set)

    def read(self) -> Recurrence:
        """Return the recurrence that the loop is, or end the search."""
        loop = self.loop
        _require(loop.hint in ("", "reduce") and not stop_flags(loop))
        assigned = assigned_by(loop.body)
        self.written = frozenset(stored_by(loop.body))
        self.carried = frozenset(assigned & scalars_beside(loop, self.kernel.body))
        self.changing = frozenset(assigned | {loop.var})
        _require(not any(depends(e, self.carried | self.written) for e in (loop.lo, loop.hi)))
        for node in loop.body:
            self._statement(node)
        return self._found()

    # the statements

    def _statement(self, node: Stmt) -> None:
        """Read what a statement leaves in scalars and sums."""
        match node:
            case Assign(name=name, op=op):
                value = self._value(node.value)
                if op:
                    value = Op(op, (self._value(Var(name, node.type)), value), node.type)
                if name in self.carried or self._depends(value):
                    _require(name not in self.free_names)
                    self.values[name] = value
                    if name in self.carried:
                        self.updates[name] = _Update(Var(name, node.type), value, (), node.line)
                else:
                    self._keep(node, [node])
            case Store():
                self._store(node, ())
            case For() if not self._is_free(node):
                loops = tuple(perfect(node))
                for each in loops:
                    _require(not any(self._is_inner(e) for e in (each.lo, each.hi)) and not each.hint)
                for leaf in loops[-1].body:
                    _require(isinstance(leaf, Store))
                    if isinstance(leaf, Store):
                        self._store(leaf, loops)
            case For() | If():
                self._keep(node, [s for s in statements((node,)) if isinstance(s, Assign)])

    def _store(self, node: Store, loops: tuple[For, ...]) -> None:
        """Read a store into a sum."""
        _require(not any(self._is_inner(i) for i in node.index) and node.buffer not in self.updates)
        # an element that several iterations of the inner loops update would be rescaled once for all of them;
        # indices below 0 count from the end
        _require(all(Var(loop.var, INT) in node.index and counts_up(loop) for loop in loops))
        value = self._value(node.value)
        value = Op(node.op, (node.target, value), node.target.type) if node.op else value
        self.updates[node.buffer] = _Update(node.target, value, loops, node.line)

    def _keep(self, node: Stmt, assigns: Sequence[Assign]) -> None:
        """Keep a statement that does not depend on other iterations."""
        _require(self._is_free(node))
        for each in assigns:
            _require(each.name not in self.used_names)  # it would have had another value where it was read
            self.free_names[each.name] = each.type
        self.free.append(node)

    def _value(self, expr: Expr) -> Expr:
        """Return an expression in terms of what the iteration finds."""
        for e in walk(expr):
            if isinstance(e, Var) and e.name in self.free_names:
                self.used_names.add(e.name)

        def change(e: Expr) -> Expr:
            return self.values.get(e.name, e) if isinstance(e, Var) else e

        result: Expr = rewrite(expr, change)
        return result

    def _depends(self, expr: Expr) -> bool:
        """Whether a value depends on what other iterations leave."""
        return depends(expr, self.carried | self.written)

    def _is_inner(self, expr: Expr) -> bool:
        """Whether an index or a bound of a sum differs between iterations."""
        return depends(expr, self.changing | self.written)

    def _is_free(self, node: Stmt) -> bool:
        """Whether a statement stores nothing and reads nothing of other iterations."""
        names = self.carried | self.values.keys()
        for s in statements((node,)):
            if isinstance(s, Store) or (isinstance(s, Assign) and s.name in names):
                return False
            if any(depends(e, names | self.written) for e in walk(s)):
                return False
        return True

    # the form

    def _found(self) -> Recurrence:
        """Return the recurrence of the updates that were read."""
        found = [(u, pair) for u in self.updates.values() if (pair := self._maximum(u)) is not None]
        _require(len(found) == 1 and len(self.updates) > 1)
        update, (top, score) = found[0]
        _require(top.type.dtype not in NARROW and update.value.type.dtype == top.type.dtype)
        self.top, self.now, self.weight = top, update.value, _exp_of(score, update.value)
        sums = tuple(self._sum(u) for u in self.updates.values() if u is not update)
        read = variables_of(score, *(s.term for s in sums))
        kept = {name: type_ for name, type_ in self.free_names.items() if name in read}
        return Recurrence(
            self.loop, top, score, self.weight, sums, tuple(self.free), kept, update.line or self.loop.line
        )

    def _maximum(self, update: _Update) -> tuple[Var, Expr] | None:
        """Return the scalar and the score of which an update is the running maximum, if it is one."""
        match update.target, update.value:
            case Var(name=name), Op(name="max", args=(one, other)):
                for old, score in ((one, other), (other, one)):
                    if isinstance(old, Var) and old.name == name and not self._depends(score):
                        return old, score
        return None

    def _sum(self, update: _Update) -> Sum:
        """Return the sum that an update is."""
        value = update.value
        _require(isinstance(value, Op) and value.name == "+" and value.type.dtype == self.top.type.dtype)
        assert isinstance(value, Op)
        for old, added in (value.args, value.args[::-1]):
            if self._is_rescaled(old, update.target):
                term: Expr = rewrite(added, self._named)
                _require(self._is_linear(term))
                return Sum(update.target, term, update.loops, update.line)
        raise _NoRecurrence

    def _is_rescaled(self, expr: Expr, target: Var | Load) -> bool:
        """Whether an expression is the old value of a sum, rescaled to the new maximum."""
        if not isinstance(expr, Op) or expr.name != "*":
            return False
        return any(
            is_same(old, target) and is_same(factor, _exp_of(self.top, self.now))
            for old, factor in (expr.args, expr.args[::-1])
        )

    def _named(self, expr: Expr) -> Expr:
        is_weight = isinstance(expr, Op) and expr.name == "exp" and is_same(expr, self.weight)
        return Var(WEIGHT, expr.type) if is_weight else expr

    def _is_linear(self, term: Expr) -> bool:
        """Whether a term is a product of the weight and of what depends on no other iteration."""
        match term:
            case Var(name=name) if name == WEIGHT:
                return True
            case Op(name="*", args=(one, other)):
                return any(
                    self._is_linear(a) and self._is_constant(b) for a, b in ((one, other), (other, one))
                )
            case Op(name="/", args=(one, other)):
                return self._is_linear(one) and self._is_constant(other)
            case Op(name="neg", args=(one,)):
                return self._is_linear(one)
        return False

    def _is_constant(self, expr: Expr) -> bool:
        return not self._depends(expr) and not depends(expr, frozenset({WEIGHT}))


def _exp_of(value: Expr, less: Expr) -> Expr:
    return Op("exp", (Op("-", (value, less), less.type),), less.type)


def counts_up(loop: For) -> bool:
    """Whether the variable of a loop is never below 0, where an index counts from the end."""
    return isinstance(loop.lo, Const) and loop.lo.value >= 0
