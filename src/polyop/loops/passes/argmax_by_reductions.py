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
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..analysis.equality import is_same
from ..analysis.searches import Test, search, tests_of
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
    children,
    names_of,
    unused,
)
from ..ir.note import Note
from ..ir.rewriter import Place, substitute, with_statements
from ..ir.types import kind
from ..ir.uses import assigned_by, loads_of, stored_by, variables_of
from ..program import Program
from .strip_mine import trips

MIN_TRIPS = 16
"""A loop that is known to have fewer iterations is left as it is."""
MAX_INT32 = 2**31 - 1
"""The iterations that ``at`` can count where it is an int32."""


def argmax_by_reductions(program: Program) -> Program:
    """Return the program in which loops that remember their greatest element are reductions."""
    kernel, named = program.kernel, program.named_loops()
    used_names, notes = names_of(kernel), list[Note]()

    def change(node: Stmt, _place: Place) -> Sequence[Stmt] | None:
        found = _argmax(node) if isinstance(node, For) else None
        if found is None:
            return None
        why_not = "the schedule names it" if found.loop.var in named else found.obstacle
        how = f"left as it is: {why_not}" if why_not else "done by two reductions, which have vector lanes"
        extreme = "greatest" if found.test.is_greater else "least"
        text = f"loop {found.loop.var}: a search for the {extreme} element, {how}"
        notes.append(Note(node.line, text, "argmax_by_reductions"))
        return (node if why_not else found.reduced(used_names),)

    body = with_statements(kernel.body, change)
    return program.with_(*notes, kernel=replace(kernel, body=body)) if notes else program


@dataclass(frozen=True)
class _Argmax:
    """A loop around one test, of ``element``: what the test remembers alone changes the greatest."""

    loop: For
    element: Load
    test: Test

    @property
    def obstacle(self) -> str:
        """Why the loop is not worth two reductions, in words; "" if it is."""
        count = trips(self.loop)
        if self.loop.hint == "serial":
            return "serial() asks for its order"
        if count is not None and count < MIN_TRIPS:
            return f"it has fewer than {MIN_TRIPS} iterations"
        if stride(self.element, self.loop.var) != UNIT:
            return "its elements are not adjacent in memory"
        return ""

    def reduced(self, used_names: set[str]) -> Stmt:
        """Return the two reductions; their names are not in ``used_names``."""
        loop, test, line = self.loop, self.test, self.loop.line
        top = Var(unused("top", used_names), self.element.type)
        over = self._copy(used_names)
        here = substitute(self.element, {loop.var: Var(over.var, INT)})
        reduction = replace(over, body=(Assign(top.name, here, "max" if test.is_greater else "min", line),))
        at = Var(unused("at", used_names), self._position)
        equal = Op("==", (self.element, top), BOOL)
        # of equal elements the first wins; where none is greater than the greatest before, that stays
        greater = Op(test.comparison, (top, test.greatest), BOOL) if len(test.comparison) == 1 else None
        over = self._copy(used_names)
        found = tuple(search(loop.var, over, equal, test.remember, at, line, first_wins=greater))
        as_it_was = self._as_it_was(top)
        rest = found if as_it_was is None else (If(as_it_was, (loop,), found, line),)
        return If(loop.lo < loop.hi, (Assign(top.name, test.greatest, "", line), reduction, *rest), (), line)

    @property
    def _position(self) -> Type:
        """The type of positions in the loop: as narrow as the elements, so that both have as many lanes."""
        return Type("int64" if self.element.type.dtype in ("float64", "int64", "uint64") else "int32")

    def _as_it_was(self, top: Var) -> Expr | None:
        """Return the condition under which the loop runs as it was; None for never."""
        steps = self.loop.hi - self.loop.lo
        long = [steps > Const(MAX_INT32, INT)] if self._position.dtype == "int32" else []
        tests = [*long, *([Op("isnan", (top,), BOOL)] if kind(top.type) == "f" else [])]
        return None if not tests else functools.reduce(lambda a, b: Op("or", (a, b), BOOL), tests)

    def _copy(self, used_names: set[str]) -> For:
        return replace(self.loop, var=unused(self.loop.var, used_names), body=())


def _argmax(loop: For) -> _Argmax | None:
    """Return what a loop compares and remembers; None if it is no search for one element."""
    for test in tests_of(loop.body[0]) if len(loop.body) == 1 else ():
        if isinstance(test.element, Load) and _is_argmax(loop, test):
            return _Argmax(loop, test.element, test)
    return None


def _is_argmax(loop: For, test: Test) -> bool:
    """Whether a loop's test changes what is the greatest to the element, and otherwise only remembers."""
    remember = [s for s in test.remember if isinstance(s, (Store, Assign)) and _sets_one_cell(s, loop.var)]
    targets = frozenset(stored_by(remember) | assigned_by(remember))
    read = (loop.lo, loop.hi, test.element, *(e for s in remember for e in children(s)))
    return (
        len(targets) == len(test.remember)
        and kind(test.element.type) in "iuf"
        and depends(test.element, frozenset({loop.var}))
        and not any(depends(e, targets) for e in read)
        and _is_remembered(test, remember, loop.var)
    )


def _sets_one_cell(node: Store | Assign, var: str) -> bool:
    """Whether a statement sets a scalar, or an element that is the same in each iteration."""
    index = node.index if isinstance(node, Store) else ()
    return not node.op and not loads_of(*index) and var not in variables_of(*index)


def _is_remembered(test: Test, remember: Sequence[Store | Assign], var: str) -> bool:
    """Whether what is the greatest is the last element that was remembered, by its value or by its index."""
    indices = [s.target for s in remember if is_same(s.value, Var(var, INT))]
    by_index = any(is_same(substitute(test.element, {var: index}), test.greatest) for index in indices)
    return by_index or any(test.keeps(s) for s in remember)
