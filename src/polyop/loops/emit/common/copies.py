"""The copies of a statement in unrolled code: rows of one loop times vectors of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...analysis.lanes import LANE, ROW, dependence
from ...ir.grammar import Expr
from .c_text import identifier
from .expressions import Lanes, Scope


@dataclass(frozen=True)
class Copy:
    """One copy: the numbers of its row and vector, and its scope.

    ``start``: the first active lane as C text, or None for the first of all.
    """

    row: int
    unit: int
    scope: Scope
    start: str | None = None


@dataclass(frozen=True)
class Copies:
    """All copies, and for each scalar whether it depends on the row, the lane, both or neither."""

    items: tuple[Copy, ...]
    dependences: Mapping[str, frozenset[str]]
    row_var: str = ""
    lane_var: str = ""

    def of(self, expressions: Sequence[Expr], name: str = "") -> list[Copy]:
        """Return one copy for each distinct value of these expressions (and this scalar)."""
        depends_on = self.dependences.get(name, frozenset())
        for expr in expressions:
            depends_on = depends_on | dependence(expr, self.dependences, self.row_var, self.lane_var)
        kept = self.items
        if ROW not in depends_on:
            kept = tuple(c for c in kept if c.row == self.items[0].row)
        if LANE not in depends_on:
            kept = tuple(c for c in kept if c.unit == self.items[0].unit)
        return list(kept)

    def text(self, name: str, copy: Copy) -> str:
        """Return the C name of a scalar in a copy."""
        depends_on = self.dependences.get(name)
        if depends_on is None or name in copy.scope.names:
            return copy.scope.names.get(name, identifier(name))
        rows = len({c.row for c in self.items}) > 1 and ROW in depends_on
        units = len({c.unit for c in self.items}) > 1 and LANE in depends_on
        return identifier(name) + (f"_r{copy.row}" if rows else "") + (f"_u{copy.unit}" if units else "")

    def named(self) -> Copies:
        """Return the copies with the names of their scalars in their scopes."""
        items = tuple(
            replace(c, scope=c.scope.with_names({n: self.text(n, c) for n in self.dependences}))
            for c in self.items
        )
        return replace(self, items=items)


def plain(scope: Scope) -> Copies:
    """Return the one copy of a body that is not vectorised."""
    return Copies((Copy(0, 0, scope),), {})


def lanes_for(var: str, width: int, count: str | None, dependences: Mapping[str, frozenset[str]]) -> Lanes:
    """Return the lanes of a vector loop."""
    return Lanes(var, width, count, frozenset(n for n, d in dependences.items() if LANE in d))
