"""Which indices stay inside their dimensions: proved, checked once per call, or at each access.

    x[i], 0 <= i < x.shape[0]       proved
    x[i], 0 <= i < n                a precondition of the call: n <= x.shape[0]
    x[index[i]]                     checked at each access

As in NumPy, an index from -size to -1 counts from the end. An index that may be negative is checked.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from ..ir.failing import failing_axis, rule_of
from ..ir.grammar import Expr, For, Kernel, Load, Store
from . import affine
from .conditions import condition_of
from .polyhedra import Access, Leaf, Model
from .session import IslSession

MAX_PIECES = 4
"""Most pieces of a set of sizes whose complement is assumed: the complement has many times as many."""


@dataclass(frozen=True)
class Precondition:
    """A check of the sizes at each call: where ``condition`` holds, the access of the line is out of bounds.

    ``negative``: where it holds, the size of a temporary is negative instead. ``rule``: the rule that is
    broken instead; "" for the index of an access.
    """

    condition: Expr
    line: int
    buffer: str
    axis: int
    size: Expr
    negative: bool = False
    rule: str = ""


@dataclass
class Bounds:
    """How each access is kept inside its buffer.

    ``dynamic`` maps an access (see :func:`key`) to the axes that are checked each time. ``guarded`` are the
    accesses that are inside only because of a condition around them: they must not be made without it.
    """

    preconditions: list[Precondition] = field(default_factory=list)
    dynamic: dict[tuple[str, Any], set[int]] = field(default_factory=dict)
    guarded: set[tuple[str, Any]] = field(default_factory=set)
    sizes: list[Any] = field(default_factory=list)
    """Sets of sizes that each call is checked for: only of constant indices, others are costly to assume."""
    errors: dict[tuple[str, int], list[Any]] = field(default_factory=dict)
    """isl's sets of sizes for which a precondition fails, by the tensor and axis that it reports."""

    def axes(self, node: Load | Store) -> frozenset[int]:
        """Return the axes of an access that are checked each time."""
        return frozenset(self.dynamic.get(key(node), ()))

    def is_plain(self, node: Load | Store) -> bool:
        """Whether an access is neither checked nor inside only because of a condition around it."""
        return not self.axes(node) and key(node) not in self.guarded


def key(node: Load | Store) -> tuple[str, Any]:
    """Return what identifies an access: equal accesses on the same line share it."""
    return (node.buffer, (node.index, node.line))


def find_bounds(model: Model, original: Bounds | None = None) -> Bounds:
    """Return how every access of the kernel is kept inside its buffer.

    ``original`` are the bounds of the kernel as its author wrote it: a pass may drop a statement, but not its
    error.
    """
    bounds = Bounds()
    if original is not None:
        bounds = Bounds(
            [*original.preconditions], errors={at: [*sets] for at, sets in original.errors.items()}
        )
    decided: set[Any] = set()
    for leaf in model.leaves:
        for access in leaf.accesses:
            if not isinstance(access.node, (Load, Store)):
                continue
            for axis in range(len(access.node.index)):
                access_key = (key(access.node), axis, leaf.constraints, access.around, access.guards)
                if access_key not in decided:
                    decided.add(access_key)
                    _decide(model, leaf, access, axis, bounds, gather=original is None)
    return bounds


def negative_sizes(model: Model, bounds: Bounds) -> None:
    """Put preconditions first that no size of a temporary is negative."""
    rows = []
    for buffer in model.kernel.buffers.values():
        for axis, size in enumerate(buffer.shape):
            text = affine.text(size, model.affine_names(())) if buffer.role == "local" else None
            negative = model.parameter_set([f"{text} < 0"]) if text is not None else None
            if negative is not None and not negative.is_empty():
                row = (condition_of(model, negative), buffer.line, buffer.name, axis, size)
                rows.append(Precondition(*row, negative=True))
    bounds.preconditions[:0] = rows


def is_inside_once_checked(model: Model, leaf: Leaf, access: Access, axis: int) -> bool:
    """Whether an access is inside its dimension once the sizes fulfil their preconditions."""
    outside = _outside(model, access, axis)
    if outside is None:
        return False
    if _fails_surely(model, leaf, access, axis):
        return True
    return model.sizes_where(leaf, access, outside) is None


def is_inside(model: Model, leaf: Leaf, access: Access) -> bool:
    """Whether an access is proved to be inside its buffer, for all sizes that the session assumes."""
    rows = (_outside(model, access, axis) for axis in range(len(access.index)))
    return all(row is not None and model.sizes_where(leaf, access, row) is None for row in rows)


def is_inside_in_loops(model: Model, leaf: Leaf, access: Access, axis: int, loops: Sequence[For]) -> bool:
    """Whether an index is proved to be inside in all iterations of loops, whatever is tested in them."""
    outside = _outside(model, access, axis, anywhere=True)
    return outside is not None and model.sizes_where_in_loops(leaf, outside, loops) is None


def is_inside_too(model: Model, leaf: Leaf, loops: Sequence[For]) -> bool:
    """Whether all accesses of a leaf are inside in other loops around it too, for all sizes of calls.

    That they are inside in its own is proved, or checked at each call.
    """
    for access in leaf.accesses:
        for axis in range(len(access.index) if isinstance(access.node, (Load, Store)) else 0):
            outside, anywhere = (_outside(model, access, axis, anywhere=flag) for flag in (False, True))
            if outside is None or anywhere is None:
                return False
            wider = model.sizes_where_in_loops(leaf, anywhere, loops)
            if wider is None:
                continue
            refused = model.sizes_where(leaf, access, outside)
            is_refused = refused is not None and _fails_surely(model, leaf, access, axis)
            if not is_refused or not model.session.is_subset(wider, refused):
                return False
    return True


def always_runs(model: Model, leaf: Leaf, loops: Sequence[For]) -> bool:
    """Whether the last of some loops has an iteration in each iteration of the others; ``leaf`` is in it."""
    *around, last = loops
    names = model.affine_names([loop.var for loop in around])
    ends = [affine.text(e, names) for e in (last.lo, last.hi)]
    return None not in ends and model.sizes_where_in_loops(leaf, f"{ends[0]} >= {ends[1]}", around) is None


def _outside(model: Model, access: Access, axis: int, *, anywhere: bool = False) -> str | None:
    """Return the condition, as isl's text, that an index is outside its dimension; None if not affine.

    For a pair it may hold for more iterations: see :func:`_fails_surely`. ``anywhere``: the condition is for
    other iterations than the access has. The half that cannot be violated is left out: isl reads one
    condition faster than two. An access that fails (ir/failing.py) is outside one dimension, whatever the
    size.
    """
    if rule_of(access.node.index[axis]):
        return "0 = 0" if axis == failing_axis(access.node.index) else "0 = 1"
    pair = access.pairs.get(axis)
    index = access.index[axis] if pair is None else pair.at_most
    size = affine.text(model.kernel.buffers[access.target].shape[axis], model.affine_names(()))
    if index is None or size is None:
        return None
    beyond = f"{index} >= {size}"
    if pair is not None:
        return f"({beyond} or {pair.no_instance})" if anywhere else beyond
    return beyond if model.is_nonnegative(access.node.index[axis]) else f"({beyond} or {index} < 0)"


def _fails_surely(model: Model, leaf: Leaf, access: Access, axis: int) -> bool:
    """Whether a call fails for all sizes for which :func:`_outside` has an iteration.

    For a pair, that condition has the greatest quotient in place of each. So the iterations with this one
    have to be outside for the same sizes.
    """
    if not access.must or not (leaf.definite if access.around is None else access.sure):
        return False
    pair = access.pairs.get(axis)
    if pair is None:
        return True
    outside = _outside(model, access, axis)
    if outside is None:
        return False
    failing = model.sizes_where(leaf, access, outside)
    last = model.sizes_where(leaf, access, f"{pair.quotient} = {pair.last} and {outside}")
    return failing is None or (last is not None and model.session.is_subset(failing, last))


def _decide(model: Model, leaf: Leaf, access: Access, axis: int, bounds: Bounds, *, gather: bool) -> None:
    node, subset = access.node, model.session.is_subset
    outside = _outside(model, access, axis)
    if outside is None:
        bounds.dynamic.setdefault(key(node), set()).add(axis)
        return
    failing, place = model.sizes_where(leaf, access, outside), (node.buffer, axis)

    def is_reported(sizes: Any) -> bool:
        """Whether an earlier precondition fails for all these sizes, so that nothing runs."""
        here = bounds.errors.get(place, [])
        elsewhere = (s for at, sets in bounds.errors.items() if at != place for s in reversed(sets))
        return any(subset(sizes, known) for known in itertools.chain(reversed(here), elsewhere))

    if access.guards or leaf.ranges != leaf.constraints:
        anywhere = _outside(model, access, axis, anywhere=True)
        unguarded = model.sizes_where_in_loops(leaf, anywhere or outside)
        same = unguarded is None or (failing is not None and subset(unguarded, failing))
        if not same and not is_reported(unguarded):
            bounds.guarded.add(key(node))
    if failing is None or is_reported(failing):
        return
    if not _fails_surely(model, leaf, access, axis):
        bounds.dynamic.setdefault(key(node), set()).add(axis)
        return
    is_constant = (affine.linear(node.index[axis]) or {"?": 0}).keys() == {""}
    if is_constant and gather and failing.n_basic_set() <= MAX_PIECES:
        valid = failing.gist(model.parameter_set([])).complement()
        if not any(valid.is_equal(sizes) for sizes in bounds.sizes):
            bounds.sizes.append(valid)
    bounds.errors.setdefault(place, []).append(failing)
    extent = model.kernel.buffers[node.buffer].shape[axis]
    bounds.preconditions.append(
        Precondition(
            condition_of(model, failing),
            node.line,
            node.buffer,
            axis,
            extent,
            rule=rule_of(node.index[axis]) or "",
        )
    )


def describe(
    bounds: Bounds, kernel: Kernel, once_per_row: AbstractSet[tuple[str, int]] = frozenset()
) -> list[tuple[int, str, str]]:
    """Return (line, text, tensor) of each check that remains.

    ``once_per_row`` names the accesses, by tensor and line, that their loop checks once for each row.
    """
    rows = [
        (p.line, f"{p.buffer}: dimension {p.axis} is checked against the sizes at each call", p.buffer)
        for p in bounds.preconditions
    ]
    names: Mapping[str, Any] = kernel.buffers
    for (buffer, (_, line)), axes in bounds.dynamic.items():
        if buffer in names:
            shown = " and ".join(str(a) for a in sorted(axes))
            when = "once for each row" if (buffer, line) in once_per_row else "at each access"
            rows.append((line, f"{buffer}: dimension {shown} is checked {when}", buffer))
    return rows


def demanded_bounds(kernel: Kernel, session: IslSession) -> tuple[Bounds, IslSession]:
    """Return the bounds of the kernel as its author wrote it, and a session that assumes their sizes.

    It assumes what the kernel demands of its calls, too.
    """
    model = Model(kernel, session)
    demanded = list(_demanded_sizes(model))
    if demanded:
        model = Model(kernel, session := session.assuming(demanded))
    bounds = find_bounds(model)
    session = session.assuming([*demanded, *bounds.sizes])
    if bounds.sizes and bounds.dynamic:
        bounds = find_bounds(model := Model(kernel, session), bounds)
    if not kernel.derived:
        negative_sizes(model, bounds)
    return bounds, session


def _demanded_sizes(model: Model) -> Iterator[Any]:
    """Yield isl's set of sizes and attributes for each demand of the kernel that is affine."""
    for demand in model.kernel.demands:
        text, exact = affine.condition(demand.condition, model.affine_names(()))
        if text is not None and exact:
            yield model.parameter_set([text])
