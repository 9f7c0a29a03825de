"""The copies of a statement in unrolled code: rows of one loop times vectors of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...analysis.strides import is_counted
from ...ir.grammar import Assign, Expr, For, If, Load, Stmt, Store, Var, children, statements
from .c_text import identifier
from .expressions import Lanes, Scope

ROW, LANE = "row", "lane"


@dataclass(frozen=True)
class Copy:
    """One copy: the numbers of its row and vector, and its scope.

    ``start`` and ``count``: the first active lane and their number as C text, or None for all lanes.
    """

    row: int
    unit: int
    scope: Scope
    start: str | None = None
    count: str | None = None


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


def dependence(expr: Expr, dependences: Mapping[str, frozenset[str]], row: str, lane: str) -> frozenset[str]:
    """Return whether a value depends on row or lane; scalars and private tensors have ``dependences``."""
    result: frozenset[str] = frozenset()
    if isinstance(expr, Var):
        result = dependences.get(expr.name, frozenset())
        result |= ({ROW} if expr.name == row else set()) | ({LANE} if expr.name == lane else set())
    if isinstance(expr, Load):
        result = dependences.get(expr.buffer, frozenset())  # a tensor with a copy per lane
    for child in children(expr):
        result |= dependence(child, dependences, row, lane)
    return result


def differing(
    body: Sequence[Stmt], row: str, lane: str, given: Mapping[str, frozenset[str]]
) -> dict[str, frozenset[str]]:
    """Return for each scalar that a body assigns whether it depends on row or lane; ``given`` is known."""
    result = {s.name: frozenset[str]() for s in statements(tuple(body)) if isinstance(s, Assign)} | dict(
        given
    )
    changed = True

    def visit(nodes: Sequence[Stmt], control: frozenset[str]) -> None:
        nonlocal changed
        for node in nodes:
            if isinstance(node, If):
                inner = control | dependence(node.condition, result, row, lane)
                visit(node.body, inner)
                visit(node.orelse, inner)
            elif isinstance(node, For):
                visit(node.body, control)
            elif isinstance(node, Assign):
                new = result[node.name] | control | dependence(node.value, result, row, lane)
                changed = changed or new != result[node.name]
                result[node.name] = new

    while changed:
        changed = False
        visit(body, frozenset())
    return result


def plain(scope: Scope) -> Copies:
    """Return the one copy of a body that is not vectorised."""
    return Copies((Copy(0, 0, scope),), {})


def width_of(
    body: Sequence[Stmt], lanes: str, dependences: Mapping[str, frozenset[str]], sizes: Mapping[str, int]
) -> int:
    """Return the bytes of the widest value that differs between lanes; addresses do not count."""
    from ...ir.grammar import Load, Type
    from .c_text import SIZES, computed, memory

    widest = 1
    varying = frozenset(n for n, d in dependences.items() if LANE in d)

    def look(expr: Expr) -> None:
        nonlocal widest
        if LANE in dependence(expr, dependences, "", lanes):
            kind: Type = expr.type
            elem = computed(kind)
            widest = max(widest, 1 if elem == "bool" else SIZES[elem])
            if isinstance(expr, Load):
                widest = max(widest, SIZES[memory(kind.dtype)])
        if not isinstance(expr, Load) and not is_counted(expr, lanes, varying):
            for child in children(expr):
                look(child)

    for node in statements(tuple(body)):
        if isinstance(node, (Store, Assign)):
            look(node.value)
            if isinstance(node, Store):
                elem = computed(node.value.type)  # one for all lanes is spread over them, too
                widest = max(widest, sizes.get(node.buffer, 1), 1 if elem == "bool" else SIZES[elem])
            elif LANE in dependences.get(node.name, frozenset()):
                elem = computed(node.value.type)
                widest = max(widest, 1 if elem == "bool" else SIZES[elem])
        elif isinstance(node, If):
            look(node.condition)
    return widest


def lanes_for(var: str, width: int, count: str | None, dependences: Mapping[str, frozenset[str]]) -> Lanes:
    """Return the lanes of a vector loop."""
    return Lanes(var, width, count, frozenset(n for n, d in dependences.items() if LANE in d))
