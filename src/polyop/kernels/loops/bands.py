"""Neighbouring loops of threads that run row by row together, the later ones some rows behind.

What one loop writes the next then reads from a cache, and threads meet once for all of them. Each thread has
a band of rows. Within it a loop runs so far behind the ones before that all it shares with them is done;
rows at the edges of bands, which share with two of them, are left until all bands are through. This is
shift-and-peel (Manjikian and Abdelrahman, "Fusion of Loops for Parallelism and Locality", 1997).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from . import affine
from .dependence import Conflict, Paths, common, paths
from .ir import For, If, Kernel, Load, Stmt, Store, statements, walk
from .plan import Member, Plan
from .polyhedra import Model

MOST = 8
"""Loops of a band."""
FURTHEST = 8
"""Rows between what two loops share: more are a small part of no band."""

Distances = Mapping[tuple[str, str], tuple[int, int] | None]
"""By the variables of two loops, the first before the second in the text: the least and the greatest
difference of the rows of each that conflict; None where there is no bound."""


def together(
    kernel: Kernel,
    model: Model,
    found: Sequence[Conflict],
    plan: Plan,
    owners: Mapping[str, tuple[str, ...]],
) -> None:
    """Put the groups of loops that run together in the plan; each loop of threads is in one at most."""
    lines = {s.var: s.line for s in statements(kernel.body) if isinstance(s, For)}
    for body in _bodies(kernel.body):
        for members in _bands(body, model, found, plan, owners):
            plan.bands.append(members)
            first = members[0].var
            for member in members[1:]:
                text = f"runs {member.behind} behind the one of line {lines[first]}, together with it"
                plan.notes.append((lines[member.var], f"loop {member.var}: {text}"))


def _bands(
    body: Sequence[Stmt],
    model: Model,
    found: Sequence[Conflict],
    plan: Plan,
    owners: Mapping[str, tuple[str, ...]],
) -> list[tuple[Member, ...]]:
    result = []
    for group in _runs(body, plan, owners):
        distances = _distances(model, found, [loop.var for loop in group])
        members: list[Member] = []
        for loop in group:
            added = _added(members, loop, distances, group)
            if added is None:
                result.append(tuple(members))
                added = Member(loop.var, 0, 0)
                members = []
            members.append(added)
        result.append(tuple(members))
    return [members for members in result if len(members) > 1]


def _bodies(body: Sequence[Stmt]) -> Iterator[Sequence[Stmt]]:
    yield body
    for node in body:
        if isinstance(node, For):
            yield from _bodies(node.body)
        elif isinstance(node, If):
            yield from _bodies(node.body)
            yield from _bodies(node.orelse)


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


def _added(members: Sequence[Member], loop: For, distances: Distances, group: Sequence[For]) -> Member | None:
    """Return the loop as the next member, or None where it cannot be, or would share nothing."""
    if len(members) == MOST:
        return None
    behind = inset = 0
    shares = False
    for member in members:
        first = next(other for other in group if other.var == member.var)
        if (member.var, loop.var) in distances:
            bounds = distances[member.var, loop.var]
            if bounds is None:
                return None
            behind = max(behind, member.behind + bounds[1])
            inset = max(inset, member.inset - bounds[0])
            shares = True
        shares = shares or bool(_rows(first) & _rows(loop))
    return Member(loop.var, behind, inset) if shares or not members else None


def _rows(loop: For) -> set[tuple[str, int]]:
    """Return the tensors, and of each the axis, along which a loop takes a step at a time."""
    found = set()
    for node in statements(loop.body):
        for access in [*([node] if isinstance(node, Store) else []), *walk(node)]:
            if isinstance(access, (Load, Store)):
                forms = [affine.linear(i) or {} for i in access.index]
                found |= {(access.buffer, k) for k, f in enumerate(forms) if f.get(loop.var) == 1}
    return found


def _distances(model: Model, found: Sequence[Conflict], loops: Sequence[str]) -> Distances:
    """Return how far apart the rows are that loops conflict in, for each pair that does."""
    where = paths(model)
    number = {loop: k for k, loop in enumerate(loops)}
    result: dict[tuple[str, str], tuple[int, int] | None] = {}
    for conflict in found:
        one, other = (_at(where, leaf.id, number) for leaf in (conflict.a, conflict.b))
        if one is None or other is None or number[one[0]] >= number[other[0]]:
            continue  # leaves are in the order of the text
        pair = one[0], other[0]
        if pair in result and result[pair] is None:
            continue
        bounds = _apart(model, conflict, where, one[1], other[1])
        known = result.get(pair)
        if bounds is not None and known is not None:
            bounds = min(bounds[0], known[0]), max(bounds[1], known[1])
        result[pair] = bounds
    return result


def _at(where: Paths, leaf: str, loops: Mapping[str, int]) -> tuple[str, int] | None:
    """Return which of some loops a leaf is in, and which of its own dimensions that runs."""
    return next(((step.loop, step.dim) for step in where[leaf] if step.loop in loops), None)


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
