"""Searches for the greatest or the least element of a loop, and for where it is.

A test compares an element with the greatest before it, and remembers something of it:

    if x[j] > top:
        top = x[j]
        at = j

A search finds the iteration in which an element equals what is known to be the greatest. It is a reduction of
whole numbers, so its iterations may run in any order, or side by side in lanes:

    at = -1
    for j in range(lo, hi):
        at = max(at, j - lo if x[j] == top else -1)
    if -1 < at:
        ...what is done with x[at + lo]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..ir.grammar import BOOL, INT, Assign, Const, Expr, For, If, Op, Stmt, Store, Var
from ..ir.rewriter import substitute
from ..ir.types import cast
from .equality import is_same

MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True)
class Test:
    """``if element <comparison> greatest: remember``. No comparison holds for a NaN."""

    element: Expr
    comparison: str
    greatest: Expr
    remember: tuple[Stmt, ...]

    @property
    def is_greater(self) -> bool:
        """Whether the greatest is found; otherwise the least."""
        return self.comparison[0] == ">"

    def keeps(self, node: Store | Assign) -> bool:
        """Whether a statement sets what is the greatest to the element."""
        return not node.op and is_same(node.value, self.element) and is_same(node.target, self.greatest)


def tests_of(node: Stmt) -> Iterator[Test]:
    """Yield what a condition without another arm may be as a test: either side may be the element."""
    match node:
        case If(condition=Op(name=name, args=(a, b)), body=body, orelse=()) if name in MIRRORED:
            yield Test(a, name, b, body)
            yield Test(b, MIRRORED[name], a, body)


def search(
    var: str,
    over: For,
    is_found: Expr,
    then: Sequence[Stmt],
    at: Var,
    line: int,
    *,
    first_wins: Expr | None = None,
) -> list[Stmt]:
    """Return the search for the last iteration in which a condition holds, and what is done for it.

    The condition and the statements are about the iteration ``var``; ``over`` is the loop that searches, and
    ``at`` is new. ``first_wins``: the first iteration is searched instead, for which this must hold, too.
    """
    none = Const(-1 if first_wins is None else int(np.iinfo(at.type.dtype).max), at.type)
    here = Var(over.var, INT)
    position = cast(here - over.lo, at.type)
    value = Op("select", (substitute(is_found, {var: here}), position, none), at.type)
    body = (Assign(at.name, value, "max" if first_wins is None else "min", line),)
    wins = Op("<", (none, at), BOOL) if first_wins is None else first_wins
    done = tuple(substitute(s, {var: cast(at, INT) + over.lo}) for s in then)
    return [Assign(at.name, none, "", line), replace(over, body=body), If(wins, done, (), line)]
