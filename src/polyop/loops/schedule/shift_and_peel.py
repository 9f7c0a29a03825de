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
from ..ir.plan import Member, Plan
from ..program import Note, Program

MOST = 8
"""Loops of a band: POLYOP_MEMBERS of bands.h."""
FURTHEST = 8
"""Rows between what two loops share: more are a small part of no band."""

GIVEN_UP = "not together with its neighbours, as isl cannot tell in time how far apart they have to be"


def shift_and_peel(program: Program) -> Program:
    """Return the program with the groups of loops that run together; a loop of threads is in one at most.

    Where isl gives up, loops whose distances are not known yet run one after another, and the notes say so.
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
    """Return the groups that loops side by side make, of two members at least."""
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
    """Yield bodies that are not inside a loop that threads share."""
    shared = plan.threads | plan.columns.keys() | plan.rows.keys()
    yield body
    for node in body:
        if isinstance(node, For) and node.var not in shared:
            yield from _bodies(node.body, plan)
        elif isinstance(node, If):
            yield from _bodies(node.body, plan)
            yield from _bodies(node.orelse, plan)


def _runs(body: Sequence[Stmt], plan: Plan, owners: Mapping[str, tuple[str, ...]]) -> Iterator[list[For]]:
    """Yield loops side by side that can be members of one group."""
    kinds = itertools.groupby(body, lambda node: _kind(node, plan, owners))
    for kind, nodes in kinds:
        run = [node for node in nodes if isinstance(node, For)]
        if kind and len(run) > 1:
            yield run


def _kind(node: Stmt, plan: Plan, owners: Mapping[str, tuple[str, ...]]) -> str:
    """Return what a member is: "lanes", "rows" or "", none."""
    if not isinstance(node, For) or node.var not in plan.threads or node.hint == "border":
        return ""
    tiled = any(tile.row == node.var for tile in plan.tiles.values())
    alone = node.var in plan.private or any(node.var in names for names in owners.values())
    if tiled or alone or node.var in plan.columns.values():
        return ""
    return "lanes" if node.var in plan.vector else "rows"


def _added(members: Sequence[Member], loops: Sequence[For], loop: For, distances: Distances) -> Member | None:
    """Return the loop as the next member, or None where it cannot be, or would share nothing."""
    if len(members) == MOST or _written(loops) & _ends(loop):
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


def _written(loops: Sequence[For]) -> set[str]:
    return {s.buffer for s in statements(tuple(loops)) if isinstance(s, Store)}


def _ends(loop: For) -> set[str]:
    """Return the tensors that a loop's range is read from."""
    return {e.buffer for end in (loop.lo, loop.hi) for e in walk(end) if isinstance(e, Load)}


def _rows(loop: For) -> set[tuple[str, int]]:
    """Return the tensors, and of each the axis, along which a loop takes a step at a time."""
    found = set()
    for node in statements(loop.body):
        for access in [*([node] if isinstance(node, Store) else []), *walk(node)]:
            if isinstance(access, (Load, Store)):
                forms = [affine.linear(i) or {} for i in access.index]
                found |= {(access.buffer, k) for k, f in enumerate(forms) if f.get(loop.var) == 1}
    return found


class Distances:
    """How far apart the rows are that loops conflict in; of two loops, the first is before the second."""

    def __init__(self, model: Model, found: Sequence[Conflict]) -> None:
        self.model, self.where = model, paths(model)
        self.pairs: dict[tuple[str, str], list[tuple[Conflict, int, int]]] = {}
        for conflict in found:
            here, there = self.where[conflict.a.id], self.where[conflict.b.id]
            for one in (step for step in here if step.loop):
                for other in (step for step in there if step.loop and step.loop != one.loop):
                    pair = one.loop, other.loop
                    self.pairs.setdefault(pair, []).append((conflict, one.dim, other.dim))
        self._known: dict[tuple[str, str], tuple[int, int] | None] = {}

    def conflict(self, one: str, other: str) -> bool:
        """Whether two loops have any conflict."""
        return (one, other) in self.pairs

    def between(self, one: str, other: str) -> tuple[int, int] | None:
        """Return the least and the greatest difference of rows in conflict, or None without a bound."""
        pair = one, other
        if pair not in self._known:
            all_of = [_apart(self.model, c, self.where, a, b) for c, a, b in self.pairs[pair]]
            bounds = [found for found in all_of if found is not None]
            whole = len(bounds) == len(all_of)
            self._known[pair] = (min(b[0] for b in bounds), max(b[1] for b in bounds)) if whole else None
        return self._known[pair]


def _apart(model: Model, conflict: Conflict, where: Paths, one: int, other: int) -> tuple[int, int] | None:
    """Return the least and greatest difference of two dimensions of pairs in conflict, if they are few."""
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
    return (low, high) if low >= -FURTHEST and high <= FURTHEST else None
