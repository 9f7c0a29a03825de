"""The body of a tile's lanes: without dots, with panels in place of loads, and divided around its sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..analysis.lanes import LANE, ROW, dependence, differing
from ..analysis.strides import STRIDED, UNIFORM, UNIT, stride
from ..ir.grammar import Assign, Expr, For, If, Load, Stmt, Store, Var, children, statements
from ..ir.plan import Dot, Tile
from ..ir.rewriter import rewrite
from ..ir.uses import assigned_by, first_assigned, loads_of, stored_by, unconditional_loads


def dot_names(tile: Tile) -> dict[str, Dot]:
    """Return the dots of a tile by the beginnings of their C names."""
    return {f"d{n}_": dot for n, dot in enumerate(tile.dots)}


def variable_of(dot: str) -> str:
    """Return the variable that has the sum of a dot, which is no author's name."""
    return f"sum {dot}"


def without_dots(body: Sequence[Stmt], tile: Tile) -> tuple[Stmt, ...]:
    """Return a body of lanes with ``total += <variable>`` in place of the loops of dots."""
    result = list[Stmt]()
    for node in body:
        own = [(n, d) for n, d in dot_names(tile).items() if isinstance(node, For) and d.loop == node.var]
        kept = replace(node, body=without_dots(node.body, tile)) if isinstance(node, If) else node
        result += [Assign(d.total, Var(variable_of(name), d.type), "+", d.line) for name, d in own] or [kept]
    return tuple(result)


def from_panels(body: Sequence[Stmt], tile: Tile) -> tuple[Stmt, ...]:
    """Return a body that reads panels, each in the loop that it was packed for."""
    return tuple(_from_panels(node, tile) for node in body)


def _from_panels(node: Stmt, tile: Tile) -> Stmt:
    if isinstance(node, If):
        return replace(node, body=from_panels(node.body, tile))
    if not isinstance(node, For):
        return node
    columns = {p.load: Var(p.variable, p.load.type) for p in tile.panels if p.loops[-1].var == node.var}
    rows = {p.load: Var(p.variable, p.load.type) for p in tile.row_panels if p.loop.var == node.var}
    names = columns | rows
    if names:
        return replace(node, body=tuple(rewrite(s, _replacing(names)) for s in node.body))
    return replace(node, body=from_panels(node.body, tile))


def _replacing(names: Mapping[Load, Var]) -> Callable[[Expr], Expr]:
    def change(expr: Expr) -> Expr:
        return names.get(expr, expr) if isinstance(expr, Load) else expr

    return change


class Parts(NamedTuple):
    """The body of a tile's lanes: what comes before its sums, the sums, and what comes after them.

    ``condition`` is around all of it, and the same for all rows and lanes. The sums store nothing, and read
    nothing that differs between lanes but panels.
    """

    condition: Expr | None
    before: tuple[Stmt, ...]
    sums: tuple[Stmt, ...]
    after: tuple[Stmt, ...]

    @property
    def all(self) -> tuple[Stmt, ...]:
        """All statements but the condition."""
        return (*self.before, *self.sums, *self.after)


def dependences_of(body: Sequence[Stmt], tile: Tile, lane: str) -> dict[str, frozenset[str]]:
    """Return what differs between rows and lanes, of a body that reads panels."""
    columns = {panel.variable: frozenset({LANE}) for panel in tile.panels}
    rows = {panel.variable: frozenset({ROW}) for panel in tile.row_panels}
    sums = dict.fromkeys(map(variable_of, dot_names(tile)), frozenset({ROW, LANE}))
    return differing(body, tile.row, lane, columns | rows | sums)


def parts_of(body: tuple[Stmt, ...], tile: Tile, lane: str) -> Parts | None:
    """Return the parts of a body that reads panels, or None if its sums are not apart."""
    condition, first, dependences = None, body[0], dependences_of(body, tile, lane)
    if len(body) == 1 and isinstance(first, If) and not first.orelse:
        body, condition = first.body, first.condition
    places = [k for k, node in enumerate(body) if isinstance(node, For)]
    if not places or tile.dots or any(isinstance(s, If) for s in body):
        return None
    parts = Parts(condition, body[: places[0]], body[places[0] : places[-1] + 1], body[places[-1] + 1 :])
    inside = list(statements(parts.sums))
    shared = loads_of(*inside)
    if any(isinstance(s, Store) for s in inside):
        return None
    if any(LANE in dependence(e, dependences, tile.row, lane) for e in shared):
        return None
    fixed = condition is None or not dependence(condition, dependences, tile.row, lane)
    return parts if fixed else None


def accumulators(parts: Parts) -> list[Assign]:
    """Return an assignment of each scalar that the sums change."""
    declared = {node.name: node for node in first_assigned(parts.all)}
    changed = assigned_by(parts.sums)
    return [node for name, node in declared.items() if name in changed]


def across(lane: For, row: str) -> Iterator[tuple[For, Load]]:
    """Yield the innermost loops of a tile's sums, each with a load such as ``a[k, i]`` in a sum over k.

    Its elements are neighbours along the rows, one for all lanes, and in another row of memory at each step.
    """
    written = stored_by(lane.body)
    for loop in statements(lane.body):
        if isinstance(loop, For) and not any(isinstance(s, For) for s in loop.body):
            for load in dict.fromkeys(unconditional_loads([c for s in loop.body for c in children(s)])):
                rows, lanes, steps = (stride(load, v) for v in (row, lane.var, loop.var))
                if (rows, lanes, steps) == (UNIT, UNIFORM, STRIDED) and load.buffer not in written:
                    yield loop, load
