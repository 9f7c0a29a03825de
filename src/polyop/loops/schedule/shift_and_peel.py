"""Shift-and-peel: neighbouring parallel loops run row by row together, the later ones some rows behind.

What one loop writes the next one reads from a cache, and threads meet once for all of the loops. Each
thread has a band of rows. Within the band a loop is shifted: it runs so far behind the loops before it that
the rows which it shares with them are done. The rows at the edges of bands, which depend on two bands, are
peeled: they run after all bands. (Manjikian and Abdelrahman, "Fusion of Loops for Parallelism and
Locality", 1997.)
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ..analysis import affine
from ..analysis.dependence import Conflict, Paths, common, paths
from ..analysis.polyhedra import Model
from ..ir.grammar import For, If, Load, Stmt, Store, statements, walk
from ..ir.note import Note
from ..ir.plan import Member, Plan
from ..ir.uses import stored_by, tensors_of
from ..program import Program

MAX_MEMBERS = 8
"""The most loops of a band: POLYOP_MEMBERS of bands.h."""
MAX_DISTANCE = 8
"""The most rows between an element's uses in two loops; with more, too much of a band would be peeled."""

GIVEN_UP = "not together with its neighbours, as isl cannot tell in time how far apart they have to be"


def shift_and_peel(program: Program) -> Program:
    """Return the program with bands: groups of loops that run together. A loop is in one band at most.

    If isl gives up, the loops that have no band yet run one after another, and a note says so.
    """
    plan, distances = program.plan, Distances(program.model, program.conflicts)
    bands: list[tuple[Member, ...]] = []
    notes: list[Note] = []
    for body in _bodies(program.kernel.body, plan):
        for run in _runs(body, plan, program.owners):
            try:
                groups = _groups(run, distances)
            except program.model.isl.Error:
                notes.append(Note(run[0].line, f"loop {run[0].var}: {GIVEN_UP}", "plan"))
                return program.with_(*notes, plan=replace(plan, bands=tuple(bands)))
            for members in groups:
                bands.append(members)
                notes += _notes(members, run)
    return program.with_(*notes, plan=replace(plan, bands=tuple(bands)))


def _notes(members: Sequence[Member], run: Sequence[For]) -> Iterator[Note]:
    lines = {loop.var: loop.line for loop in run}
    for member in members[1:]:
        behind = f", {member.behind} behind" if member.behind else ""
        text = f"runs together with the one of line {lines[members[0].var]}{behind}"
        yield Note(lines[member.var], f"loop {member.var}: {text}", "plan")


def _groups(run: Sequence[For], distances: Distances) -> list[tuple[Member, ...]]:
    """Return the groups of neighbouring loops, each of two members or more."""
    result, loops = [], list[For]()
    members: list[Member] = []
    for loop in run:
        added = _added(members, loops, loop, distances)
        if added is None:
            result.append(tuple(members))
            members, loops, added = [], [], Member(loop.var, 0, 0)
        members.append(added)
        loops.append(loop)
    return [group for group in (*result, tuple(members)) if len(group) > 1]


def _bodies(body: Sequence[Stmt], plan: Plan) -> Iterator[Sequence[Stmt]]:
    """Yield the bodies that are not inside a loop on threads."""
    shared = plan.threads | plan.columns.keys() | plan.rows.keys()
    yield body
    for node in body:
        if isinstance(node, For) and node.var not in shared:
            yield from _bodies(node.body, plan)
        elif isinstance(node, If):
            yield from _bodies(node.body, plan)
            yield from _bodies(node.orelse, plan)


def _runs(body: Sequence[Stmt], plan: Plan, owners: Mapping[str, tuple[str, ...]]) -> Iterator[list[For]]:
    """Yield runs of neighbouring loops that can be members of one group."""
    kinds = itertools.groupby(body, lambda node: _kind(node, plan, owners))
    for kind, nodes in kinds:
        run = [node for node in nodes if isinstance(node, For)]
        if kind and len(run) > 1:
            yield run


def _kind(node: Stmt, plan: Plan, owners: Mapping[str, tuple[str, ...]]) -> str:
    """Return the kind of a member: "lanes" or "rows"; "" for a statement that cannot be one."""
    if not isinstance(node, For) or node.var not in plan.threads or node.hint == "border":
        return ""
    tiled = any(tile.row == node.var for tile in plan.tiles.values())
    has_copies = node.var in plan.private or any(node.var in names for names in owners.values())
    if tiled or has_copies or node.var in plan.columns.values():
        return ""
    return "lanes" if node.var in plan.vector else "rows"


def _added(members: Sequence[Member], loops: Sequence[For], loop: For, distances: Distances) -> Member | None:
    """Return the loop as the next member, or None if it cannot be one, or shares no rows with the others."""
    if len(members) == MAX_MEMBERS or stored_by(loops) & _ends(loop):
        return None  # its range is read before any of them runs
    behind = inset = 0
    shares = not members
    for member, first in zip(members, loops, strict=True):
        if distances.conflict(member.var, loop.var):
            bounds = distances.between(member.var, loop.var)
            if bounds is None:
                return None
            behind = max(behind, member.behind + bounds[1])
            inset = max(inset, member.inset - bounds[0])
            shares = True
        shares = shares or bool(_rows(first) & _rows(loop))
    return Member(loop.var, behind, inset) if shares else None


def _ends(loop: For) -> set[str]:
    """Return the tensors from which a loop's bounds are read."""
    return tensors_of(loop.lo, loop.hi)


def _rows(loop: For) -> set[tuple[str, int]]:
    """Return pairs of a tensor and the axis along which the loop moves by one."""
    rows = set()
    for node in statements(loop.body):
        for access in [*([node] if isinstance(node, Store) else []), *walk(node)]:
            if isinstance(access, (Load, Store)):
                forms = [affine.linear(i) or {} for i in access.index]
                rows |= {(access.buffer, k) for k, f in enumerate(forms) if f.get(loop.var) == 1}
    return rows


class Distances:
    """The distances between rows in which two loops conflict; the first loop is before the second one."""

    def __init__(self, model: Model, conflicts: Sequence[Conflict]) -> None:
        self.model, self.where = model, paths(model)
        self.pairs: dict[tuple[str, str], list[tuple[Conflict, int, int]]] = {}
        for conflict in conflicts:
            here, there = self.where[conflict.a.id], self.where[conflict.b.id]
            for one in (step for step in here if step.loop):
                for other in (step for step in there if step.loop and step.loop != one.loop):
                    pair = one.loop, other.loop
                    self.pairs.setdefault(pair, []).append((conflict, one.dim, other.dim))
        self._cache: dict[tuple[str, str], tuple[int, int] | None] = {}

    def conflict(self, one: str, other: str) -> bool:
        """Whether two loops have a conflict."""
        return (one, other) in self.pairs

    def between(self, one: str, other: str) -> tuple[int, int] | None:
        """Return the least and the greatest difference of rows in conflict, or None if it may be large."""
        pair = one, other
        if pair not in self._cache:
            distances = [_distance(self.model, c, self.where, a, b) for c, a, b in self.pairs[pair]]
            bounds = [bound for bound in distances if bound is not None]
            complete = len(bounds) == len(distances)
            self._cache[pair] = (min(b[0] for b in bounds), max(b[1] for b in bounds)) if complete else None
        return self._cache[pair]


def _distance(model: Model, conflict: Conflict, where: Paths, one: int, other: int) -> tuple[int, int] | None:
    """Return the least and greatest difference of two dimensions over all pairs in conflict, if small."""
    isl, kind = model.isl, model.isl.dim_type
    pairs = conflict.relation
    for first, second, _ in common(where[conflict.a.id], where[conflict.b.id]):
        pairs = pairs.equate(kind.in_, first, kind.out, second)
    if pairs.is_empty():
        return 0, 0
    dims = pairs.dim(kind.in_)
    flat = pairs.wrap().flatten()
    space = isl.LocalSpace.from_space(flat.get_space())
    step = isl.Aff.var_on_domain(space, kind.set, one).sub(
        isl.Aff.var_on_domain(space, kind.set, dims + other)
    )
    least, greatest = flat.min_val(step), flat.max_val(step)
    if not (least.is_int() and greatest.is_int()):
        return None
    low, high = least.to_python(), greatest.to_python()
    return (low, high) if low >= -MAX_DISTANCE and high <= MAX_DISTANCE else None
