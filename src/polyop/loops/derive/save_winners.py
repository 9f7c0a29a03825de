"""Save which element a maximum over a loop took, so that its gradient goes there without a search.

    top = x[i, 0]                          top_found = x[i, 0]
    for j in range(1, n):                  for j in range(1, n):
        top = max(top, x[i, j])                top_found = max(top_found, x[i, j])
                                    ->     winner = -1
                                           for j in range(1, n):
                                               winner = max(winner, j - 1 if x[i, j] == top_found else -1)
                                           taken = x[i, winner + 1] if winner >= 0 else x[i, 0]
                                           top = with_gradient(top_found, taken, 1.0)

``return_temporaries`` returns the winner. The last of equal elements wins, as in ``reverse``; where the
result is a NaN, the first value has the gradient. In ``if x[i, j] > top: top = x[i, j]`` the element wins
that is stored last.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

from ..analysis.extremes import Extreme, extreme_at
from ..analysis.ranges import span
from ..ir.grammar import (
    BOOL,
    INT,
    Buffer,
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
)
from ..ir.rewriter import substitute, with_bodies, with_places
from ..ir.types import cast
from .activity import active
from .derivation import SCALAR_INDEX, SCALAR_SHAPE, Derivation
from .names import Names


def save_winners(derivation: Derivation) -> Derivation:
    """Return the derivation with the winners of its maxima and minima as temporaries."""
    kernel = derivation.kernel
    rewriter = _Rewriter(derivation)
    body = rewriter.body(kernel.body, ())
    if not rewriter.winners:
        return derivation
    kernel = replace(kernel, body=body, buffers={**kernel.buffers, **rewriter.buffers})
    return derivation.with_(kernel=kernel, owners=rewriter.owners, winners=frozenset(rewriter.winners))


class _Rewriter:
    """Rewrites a kernel's body. ``buffers`` are the new ones, and ``owners`` those of all temporaries."""

    def __init__(self, derivation: Derivation) -> None:
        self.kernel = derivation.kernel
        self.active = active(derivation.kernel, derivation.inputs, derivation.outputs)
        self.names = Names(derivation.kernel)
        self.buffers: dict[str, Buffer] = {}
        self.owners = dict(derivation.owners)
        self.winners: list[str] = []

    def body(self, body: Sequence[Stmt], around: tuple[For, ...]) -> tuple[Stmt, ...]:
        """Return a body with the winners of its maxima and minima."""
        stmts: list[Stmt] = []
        rest = list(body)
        while rest:
            found = extreme_at(stmts, rest)
            if found is not None and self._is_worth_it(found, around):
                del rest[: 1 if found.loops else len(found.updates)]
                stmts = self._with_winner(found, stmts, around)
                continue
            node = rest.pop(0)
            inside = (*around, node) if isinstance(node, For) else around
            stmts.append(with_bodies(node, functools.partial(self.body, around=inside)))
        return tuple(stmts)

    def _is_worth_it(self, found: Extreme, around: Sequence[For]) -> bool:
        """Whether a gradient goes through a maximum, and it is known how many of its winners there are."""
        known = None not in [span(loop, around) for loop in around]
        names = {found.first.buffer, found.elements[0].buffer}
        return known and names <= self.active and found.elements[0].type.dtype == found.first.value.type.dtype

    def _with_winner(self, found: Extreme, before: list[Stmt], around: Sequence[For]) -> list[Stmt]:
        """Return the statements of a maximum and its winner, after those before its updates."""
        first, line = found.first, found.first.line
        own = self.kernel.buffers[first.buffer]
        best = self._temporary(f"{first.buffer}_found", own.dtype, around, line)
        wide, narrow = _integers(found, own.dtype)
        name = f"{first.buffer}_winner" if narrow == wide else f"{first.buffer}_last"
        search = self._temporary(name, wide, around, line)
        at = Load(search, SCALAR_INDEX, Type(wide), line)
        updates = self._updates(found, best, search)
        none: Stmt = Store(search, SCALAR_INDEX, Const(-1, Type(wide)), "", line)
        if isinstance(found.updates[0], If):
            updates = [none, *updates]
        else:
            updates = [*updates, none, *self._search(found, best, search)]
        if narrow != wide:
            name = self._temporary(f"{first.buffer}_winner", narrow, around, line)
            updates.append(Store(name, SCALAR_INDEX, cast(at, Type(narrow)), "", line))
            at = Load(name, SCALAR_INDEX, Type(narrow), line)
        self.winners.append(at.buffer)
        of = first.value.type
        wins = Op(">=", (at, Const(0, at.type)), BOOL)
        taken = Op("select", (wins, found.element(cast(at, INT)), first.value), of)
        value = Op("with_gradient", (Load(best, SCALAR_INDEX, of, line), taken, Const(1.0, of)), of)
        moved = [replace(s, buffer=best, index=SCALAR_INDEX) if s is first else s for s in before]
        return [*moved, *updates, replace(first, value=value)]

    def _updates(self, found: Extreme, best: str, search: str) -> list[Stmt]:
        """Return the updates of ``best``; those that test for a greater element remember its number."""
        number = cast(found.number(0), Type(self.buffers[search].dtype))
        stmts: list[Stmt] = []
        for node in found.updates:
            moved = _moved(node, found.first.buffer, best)
            if isinstance(moved, If):
                moved = replace(moved, body=(*moved.body, Store(search, SCALAR_INDEX, number, "", node.line)))
            stmts.append(moved)
        return found.in_loops(found.loops, stmts)

    def _search(self, found: Extreme, best: str, search: str) -> list[Stmt]:
        """Return the search for the last element that equals ``best``."""
        of = Type(self.buffers[search].dtype)
        renamed = [replace(loop, var=self.names.new(loop.var)) for loop in found.loops]
        names: dict[str, Expr] = {
            old.var: Var(new.var, INT) for old, new in zip(found.loops, renamed, strict=True)
        }
        stmts: list[Stmt] = []
        for k, element in enumerate(found.elements):
            line = element.line
            best_now = Load(best, SCALAR_INDEX, element.type, line)
            equal = Op("==", (substitute(element, names), best_now), BOOL)
            number = cast(substitute(found.number(k), names), of)
            in_order = len(found.elements) == 1  # a sum over loops: its lanes may search side by side
            other: Expr = Const(-1, of) if in_order else Load(search, SCALAR_INDEX, of, line)
            value = Op("select", (equal, number, other), of)
            stmts.append(Store(search, SCALAR_INDEX, value, "max" if in_order else "", line))
        return found.in_loops(renamed, stmts)

    def _temporary(self, name: str, dtype: str, around: Sequence[For], line: int) -> str:
        """Return the name of a new temporary, of which each iteration of ``around`` has its own."""
        name = self.names.new(name)
        self.buffers[name] = Buffer(name, dtype, SCALAR_SHAPE, "local", line, exact=True)
        self.owners[name] = tuple(loop.var for loop in around)
        return name


def _moved(node: Store | If, old: str, new: str) -> Stmt:
    """Return an update with the only element of ``new`` in place of that of ``old``."""

    def place(expr: Var | Load) -> Expr:
        ours = isinstance(expr, Load) and expr.buffer == old
        return Load(new, SCALAR_INDEX, expr.type, expr.line) if ours and isinstance(expr, Load) else expr

    return with_places((node,), place)[0]


def _integers(found: Extreme, dtype: str) -> tuple[str, str]:
    """Return the dtypes in which a winner is searched and kept.

    The search has numbers as wide as the elements, so that both have as many lanes.
    """
    count = found.count
    if count is None or count > 2**31:
        return "int64", "int64"
    return "int64" if dtype in ("float64", "int64") else "int32", "int8" if count <= 128 else "int32"
