"""Turn a loop that remembers its greatest element into two reductions, which have vector lanes.

    for j in range(1, n):               top = x[best]
        if x[j] > x[best]:              for j in range(1, n):
            best = j               ->       top = max(top, x[j])
                                        at = 2**31 - 1
                                        for j in range(1, n):
                                            at = min(at, j - 1 if x[j] == top else 2**31 - 1)
                                        if top > x[best]:
                                            best = at + 1

``>`` and ``<`` find the first of equal elements, ``>=`` and ``<=`` the last. The loop runs as it was over a
row with a NaN, which no comparison finds, and over a row with more elements than ``at`` can count.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..analysis.equality import is_same
from ..analysis.strides import UNIT, depends, stride
from ..ir.grammar import (
    BOOL,
    INT,
    Assign,
    Const,
    Expr,
    For,
    If,
    Load,
    Op,
    Stmt,
    Store,
    Type,
    Var,
    names_of,
    unused,
    walk,
)
from ..ir.note import Note
from ..ir.rewriter import Place, substitute, with_statements
from ..ir.types import cast, kind
from ..program import Program
from .strip_mine import trips

FEW = 16
"""Fewer iterations than that are left as they are."""
MOST = 2**31 - 1
"""The iterations that a narrow ``at`` can count."""
MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def argmax_by_reductions(program: Program) -> Program:
    """Return the program in which loops that remember their greatest element are reductions."""
    kernel, named = program.kernel, program.named_loops()
    taken, notes = names_of(kernel), list[Note]()

    def change(node: Stmt, _place: Place) -> Sequence[Stmt] | None:
        found = _argmax(node) if isinstance(node, For) else None
        if found is None:
            return None
        why_not = "the schedule names it" if found.loop.var in named else found.obstacle
        how = f"left as it is: {why_not}" if why_not else "done by two reductions, which have vector lanes"
        extreme = "greatest" if found.comparison[0] == ">" else "least"
        text = f"loop {found.loop.var}: a search for the {extreme} element, {how}"
        notes.append(Note(node.line, text, "argmax_by_reductions"))
        return (node if why_not else found.reduced(taken),)

    body = with_statements(kernel.body, change)
    return program.with_(*notes, kernel=replace(kernel, body=body)) if notes else program


@dataclass(frozen=True)
class _Argmax:
    """``for j: if element <comparison> greatest: remember``; ``remember`` alone changes ``greatest``."""

    loop: For
    element: Load
    comparison: str
    greatest: Expr
    remember: tuple[Stmt, ...]

    @property
    def obstacle(self) -> str:
        """Why the loop is not worth two reductions, in words; "" if it is."""
        count = trips(self.loop)
        if self.loop.hint == "serial":
            return "serial() asks for its order"
        if count is not None and count < FEW:
            return f"it has fewer than {FEW} iterations"
        if stride(self.element, self.loop.var) != UNIT:
            return "its elements are not adjacent in memory"
        return ""

    def reduced(self, taken: set[str]) -> Stmt:
        """Return the two reductions; their names are not in ``taken``."""
        loop, line = self.loop, self.loop.line
        top = Var(unused("top", taken), self.element.type)
        first = "max" if self.comparison[0] == ">" else "min"
        reduction = self._over(taken, lambda element, _: Assign(top.name, element, first, line))
        search = self._search(top, taken)
        test = self._as_it_was(top)
        rest = search if test is None else (If(test, (loop,), search, line),)
        body = (Assign(top.name, self.greatest, "", line), reduction, *rest)
        return If(loop.lo < loop.hi, body, (), line)

    @property
    def _position(self) -> Type:
        """The type of positions in the loop: as narrow as the elements, so that both have as many lanes."""
        return Type("int64" if self.element.type.dtype in ("float64", "int64", "uint64") else "int32")

    def _as_it_was(self, top: Var) -> Expr | None:
        """Return the condition under which the loop runs as it was; None for never."""
        steps = self.loop.hi - self.loop.lo
        long = [steps > Const(MOST, INT)] if self._position.dtype == "int32" else []
        tests = [*long, *([Op("isnan", (top,), BOOL)] if kind(top.type) == "f" else [])]
        return None if not tests else functools.reduce(lambda a, b: Op("or", (a, b), BOOL), tests)

    def _search(self, top: Var, taken: set[str]) -> tuple[Stmt, ...]:
        """Return the search for the element that equals ``top``, and what is remembered of it."""
        line, is_first = self.loop.line, len(self.comparison) == 1
        most = MOST if self._position.dtype == "int32" else 2**63 - 1
        none = Const(most if is_first else -1, self._position)
        at = Var(unused("at", taken), self._position)

        def found(element: Expr, var: Var) -> Stmt:
            position = cast(var - self.loop.lo, at.type)
            value = Op("select", (Op("==", (element, top), BOOL), position, none), at.type)
            return Assign(at.name, value, "min" if is_first else "max", line)

        winner = self.loop.lo + cast(at, INT)
        body = tuple(substitute(s, {self.loop.var: winner}) for s in self.remember)
        # where nothing is greater than what was the greatest before the loop, that stays
        wins = (self.comparison, (top, self.greatest)) if is_first else ("!=", (at, none))
        search = self._over(taken, found)
        return Assign(at.name, none, "", line), search, If(Op(*wins, BOOL), body, (), line)

    def _over(self, taken: set[str], statement: Callable[[Expr, Var], Stmt]) -> For:
        """Return a loop over the elements with one statement for each."""
        var = Var(unused(self.loop.var, taken), INT)
        return replace(
            self.loop, var=var.name, body=(statement(substitute(self.element, {self.loop.var: var}), var),)
        )


def _argmax(loop: For) -> _Argmax | None:
    """Return what a loop compares and remembers; None if it is no search for one element."""
    match loop.body:
        case (If(condition=Op(name=name, args=(a, b)), body=remember, orelse=()),) if name in MIRRORED:
            pass
        case _:
            return None
    targets = frozenset(s.buffer if isinstance(s, Store) else s.name for s in _sets(remember, loop.var))
    if len(targets) != len(remember) or any(depends(e, targets) for e in (loop.lo, loop.hi)):
        return None
    for element, comparison, greatest in ((a, name, b), (b, MIRRORED[name], a)):
        if (
            isinstance(element, Load)
            and kind(element.type) in "iuf"
            and depends(element, frozenset({loop.var}))
            and not depends(element, targets)
            and all(not depends(s.value, targets) for s in remember if isinstance(s, (Store, Assign)))
            and not any(depends(i, targets) for s in remember if isinstance(s, Store) for i in s.index)
            and _is_remembered(greatest, element, loop.var, remember)
        ):
            return _Argmax(loop, element, comparison, greatest, remember)
    return None


def _sets(body: Sequence[Stmt], var: str) -> Iterator[Store | Assign]:
    """Yield the statements of a body that set one cell, the same in each iteration."""
    for node in body:
        if isinstance(node, Assign) and not node.op:
            yield node
        elif isinstance(node, Store) and not node.op:
            index = [e for i in node.index for e in walk(i)]
            if not any(isinstance(e, Load) or e == Var(var, INT) for e in index):
                yield node


def _is_remembered(greatest: Expr, element: Load, var: str, remember: Sequence[Stmt]) -> bool:
    """Whether ``greatest`` is the last element that was remembered, by its value or by its index."""
    for node in remember:
        assert isinstance(node, (Store, Assign))
        if isinstance(node, Store):
            cell: Expr = Load(node.buffer, node.index, node.value.type)
        else:
            cell = Var(node.name, node.type)
        if is_same(node.value, element) and is_same(cell, greatest):
            return True
        if is_same(node.value, Var(var, INT)) and is_same(substitute(element, {var: cell}), greatest):
            return True
    return False
