"""Divisions that do not change in a loop, computed before it: C compilers leave conditional ones inside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...ir.grammar import INT, Assign, Const, For, Op, statements, walk
from ...ir.uses import loads_of, variables_of
from .c_text import Value

DIVISIONS = ("//", "%", "ceil_div")
"""Operators that take as long as some ten others. They have a value for every divisor, so none need wait."""


class Quotients:
    """The C variables that have quotients, in the loops that are being printed."""

    def __init__(self) -> None:
        self.names: dict[Op, str] = {}

    def value(self, expr: Op, given: Mapping[str, str]) -> Value | None:
        """Return the variable of a quotient, or None; ``given`` has loops' names that may be others here."""
        known = self.names.get(expr) if self.names and expr.name in DIVISIONS else None
        return None if known is None or variables_of(expr) & given.keys() else Value(known, "i64")


def unchanging(loop: For) -> Iterator[Op]:
    """Yield the quotients in a loop that depend on nothing that it counts or computes, inner ones first."""
    inside = list(statements((loop,)))
    names = {s.var if isinstance(s, For) else s.name for s in inside if isinstance(s, (For, Assign))}
    found = dict.fromkeys(e for s in inside for e in walk(s) if isinstance(e, Op) and e.name in DIVISIONS)
    for one in reversed(found):
        by_constant = isinstance(one.args[1], Const)  # C's compiler multiplies instead
        if one.type == INT and not by_constant and not variables_of(one) & names and not loads_of(one):
            yield one
