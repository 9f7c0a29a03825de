"""Dependences: which statement instances conflict, and which orders and kinds of loops that allows.

Two instances conflict when they touch the same element and one of them writes it. A conflict of
two reductions by the same operator commutes. An order is legal when every conflict that does not
commute keeps the order of the original program; a loop is parallel when no conflict is between
different iterations of it (its outer loops' iterations being the same).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..ir.grammar import For, If, Stmt
from .polyhedra import Leaf, Model


@dataclass(frozen=True, eq=False)
class Conflict:
    """Pairs of instances of two leaves (``relation``: a -> b) that conflict over ``target``."""

    a: Leaf
    b: Leaf
    target: str
    relation: Any
    op: str
    """The operator where both accesses are reductions by it, so that they commute; else ""."""


@dataclass(frozen=True)
class Step:
    """One level of a leaf's path from the root: the position in the body, and the loop there, if any.

    ``dim`` is the number of the loop's variable among the leaf's own.
    """

    position: int
    loop: str = ""
    dim: int = -1


Path = tuple[Step, ...]
Paths = dict[str, Path]


def conflicts(model: Model) -> list[Conflict]:
    """Return all conflicts of a kernel's leaves, each pair of leaves once."""
    result: list[Conflict] = []
    for number, a in enumerate(model.leaves):
        for b in model.leaves[number:]:
            if a.excludes(b):
                continue
            relations: dict[tuple[str, str], Any] = {}
            for one in a.accesses:
                for other in b.accesses:
                    if one.target != other.target or not (one.write or other.write):
                        continue
                    op = one.op if one.op and one.op == other.op else ""
                    pairs = model.map(a, one).apply_range(model.map(b, other).reverse())
                    key = (one.target, op)
                    relations[key] = relations[key].union(pairs) if key in relations else pairs
            for (target, op), relation in relations.items():
                if not relation.is_empty():
                    result.append(Conflict(a, b, target, relation.coalesce(), op))
    return result


def paths(model: Model) -> Paths:
    """Return the path of each leaf in the kernel as it is."""
    result: Paths = {}
    leaves = iter(model.leaves)

    def visit(body: Sequence[Stmt], path: Path, start: int = 0) -> int:
        position = start
        for node in body:
            if isinstance(node, For):
                visit(node.body, (*path, Step(position, node.var, _depth(path))))
                position += 1
            elif isinstance(node, If):
                position = visit(node.orelse, path, visit(node.body, path, position))
            else:
                result[next(leaves).id] = (*path, Step(position))
                position += 1
        return position

    visit(model.kernel.body, ())
    return result


def _depth(path: Path) -> int:
    return sum(1 for step in path if step.loop)


def common(a: Path, b: Path) -> list[tuple[int, int, str]]:
    """Return the loops that two leaves share: the dimension in each leaf, and the loop."""
    shared = []
    for one, other in zip(a, b):  # noqa: B905 - paths differ in length
        if one.position != other.position or one.loop != other.loop or not one.loop:
            break
        shared.append((one.dim, other.dim, one.loop))
    return shared


def carried(model: Model, conflict: Conflict, where: Paths, level: int) -> Any:
    """Return the pairs that the common loop number ``level`` carries: outer loops agree, this one differs."""
    kind = model.isl.dim_type
    pairs = conflict.relation
    loops = common(where[conflict.a.id], where[conflict.b.id])
    for one, other, _ in loops[:level]:
        pairs = pairs.equate(kind.in_, one, kind.out, other)
    one, other, _ = loops[level]
    return pairs.order_lt(kind.in_, one, kind.out, other).union(
        pairs.order_gt(kind.in_, one, kind.out, other)
    )


def forward(model: Model, conflict: Conflict, where: Paths, *, backward: bool = False) -> Any:
    """Return the pairs in which ``a`` comes before ``b`` (after it, when ``backward``)."""
    kind = model.isl.dim_type
    a, b = where[conflict.a.id], where[conflict.b.id]
    equal = conflict.relation
    ordered = None
    loops = common(a, b)
    for one, other, _ in loops:
        order = equal.order_gt if backward else equal.order_lt
        here = order(kind.in_, one, kind.out, other)
        ordered = here if ordered is None else ordered.union(here)
        equal = equal.equate(kind.in_, one, kind.out, other)
    position = len(loops)
    first = a[position].position < b[position].position
    if a is not b and first != backward:
        ordered = equal if ordered is None else ordered.union(equal)
    return ordered if ordered is not None else equal.subtract(equal)


class Legality:
    """Decides whether another order of the same leaves is legal."""

    def __init__(self, model: Model, known_conflicts: Sequence[Conflict] | None = None) -> None:
        self.model = model
        self.conflicts = [
            c for c in (conflicts(model) if known_conflicts is None else known_conflicts) if not c.op
        ]
        start = paths(model)
        self._ordered = [
            (c, forward(model, c, start), forward(model, c, start, backward=True)) for c in self.conflicts
        ]

    def broken(self, where: Paths) -> Conflict | None:
        """Return a conflict whose order another tree would reverse, or None where the tree is legal."""
        for conflict, ahead, behind in self._ordered:
            if where[conflict.a.id] is where[conflict.b.id] and conflict.a is not conflict.b:
                return conflict
            now_behind = forward(self.model, conflict, where, backward=True)
            if not ahead.intersect(now_behind).is_empty():
                return conflict
            now_ahead = forward(self.model, conflict, where)
            if not behind.intersect(now_ahead).is_empty():
                return conflict
        return None


@dataclass(frozen=True)
class Kind:
    """The kind of a loop: "parallel", "reduction" (its conflicts commute) or "sequential".

    ``over`` are a reduction's (target, operator); ``because`` is a conflict of a sequential loop that does
    not commute.
    """

    name: str
    over: tuple[tuple[str, str], ...] = ()
    because: Conflict | None = None


def classify(model: Model, all_conflicts: Sequence[Conflict]) -> dict[str, Kind]:
    """Return the kind of every loop of the kernel."""
    where = paths(model)
    kinds: dict[str, Kind] = {step.loop: Kind("parallel") for p in where.values() for step in p if step.loop}
    for conflict in all_conflicts:
        for level, (_, _, loop) in enumerate(common(where[conflict.a.id], where[conflict.b.id])):
            known = kinds[loop]
            entry = (conflict.target, conflict.op)
            if known.name == "sequential" or (conflict.op and entry in known.over):
                continue
            if carried(model, conflict, where, level).is_empty():
                continue
            if conflict.op:
                kinds[loop] = Kind("reduction", (*known.over, entry))
            else:
                kinds[loop] = Kind("sequential", (), conflict)
    return kinds
