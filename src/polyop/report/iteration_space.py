"""The iterations of a small case, and the dependences between them, as isl has them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import islpy

from ..loops.analysis import affine
from ..loops.analysis.dependence import Conflict
from ..loops.analysis.polyhedra import Leaf, Model
from ..loops.analysis.session import IslSession
from ..loops.ir.grammar import For, Kernel, Size, statements
from ..loops.program import Program
from .values import Arrow, Space

SIDE = 6
"""The size of each dimension of the small case, unless the call has a smaller one."""
MAX_PICTURES = 4
"""How many pictures there are."""
MAX_PAIRS = 20_000
Point = tuple[int, int]


OPERATIONS = 40_000_000
"""isl's quota for all pictures. They have a context of their own: the compiler's quota is the compiler's."""


def spaces(program: Program, values: Mapping[str, int]) -> tuple[Space, ...]:
    """Return pictures of the loop nests of a program, those with dependences first, then one without.

    ``values``: those of sizes and attributes, by the names that :func:`parameter_values` gives. Nests whose
    bounds depend on data have none.
    """
    own = Program(program.kernel, owners=program.owners, session=IslSession(OPERATIONS))
    try:
        made = list(_spaces(own, values))
    except islpy.Error:  # isl's quota: a picture is no reason to fail
        return ()
    drawn = [space for space in made if space.arrows]
    free = sorted((space for space in made if not space.arrows), key=lambda space: -len(space.points))
    return tuple([*drawn, *free[:1]][:MAX_PICTURES])


def _spaces(program: Program, values: Mapping[str, int]) -> Iterator[Space]:
    model = program.model
    fixed = _small(model, values)
    by_loops: dict[tuple[str, ...], list[Leaf]] = defaultdict(list)
    for leaf in model.leaves:
        if leaf.vars:
            by_loops[_shown_loops(leaf, program)].append(leaf)
    lines = {node.var: node.line for node in statements(program.kernel.body) if isinstance(node, For)}
    for loops, leaves in by_loops.items():
        nests = [leaf for leaf in model.leaves if set(loops) <= set(leaf.vars)]
        drawn = _draw(model, program.conflicts, loops, nests or leaves, fixed)
        if drawn is None:
            continue
        points, arrows, others = drawn
        numbers = {fixed[word] for word in fixed if isinstance(model.parameter_of_word[word], Size)}
        sizes = f"each size at most {max(numbers)}" if numbers else ""
        yield Space(loops, tuple(lines.get(v, 0) for v in loops), sizes, points, arrows, others)


def _shown_loops(leaf: Leaf, program: Program) -> tuple[str, ...]:
    """Return one or two loops of a leaf: the innermost one that is not parallel, with the one around it."""
    order = [v for v in leaf.vars if program.kinds[v].name != "parallel"] or list(leaf.vars)
    last = leaf.vars.index(order[-1])
    return leaf.vars[max(0, last - 1) : last + 1] if last else leaf.vars[:2]


def _small(model: Model, values: Mapping[str, int]) -> dict[str, int]:
    """Return the value of each parameter of the model in the small case."""
    result = {}
    for word, node in model.parameter_of_word.items():
        key = f"{node.buffer}.{node.axis}" if isinstance(node, Size) else node.name
        result[word] = min(values.get(key, SIDE), SIDE)
    return result


def parameter_values(
    kernel: Kernel, specs: Mapping[str, Any], attributes: Mapping[str, Any]
) -> dict[str, int]:
    """Return the sizes of tensors as ``x.0``, and the attributes that are integers, by name."""
    sizes = {
        f"{name}.{axis}": int(size)
        for name, spec in specs.items()
        if spec is not None and name in kernel.buffers
        for axis, size in enumerate(spec.shape)
    }
    return sizes | {name: value for name, value in attributes.items() if type(value) is int}


def _draw(
    model: Model,
    conflicts: Sequence[Conflict],
    loops: tuple[str, ...],
    leaves: Sequence[Leaf],
    fixed: Mapping[str, int],
) -> tuple[tuple[Point, ...], tuple[Arrow, ...], str] | None:
    """Return the points and arrows of some leaves in the plane of ``loops``; None if they have no bounds."""
    points: set[Point] = set()
    fixed_at: dict[str, int] = {}  # the values of the loops that the plane does not show
    try:
        for leaf in leaves:
            instances = _fixed(
                model.box(leaf.id, [affine.word(v) for v in leaf.vars], leaf.constraints), fixed
            )
            kind = islpy.dim_type.set
            if not instances.is_empty():
                first = _points(instances.lexmin())[0]
                for place, var in enumerate(leaf.vars):
                    if var not in loops:
                        fixed_at.setdefault(var, first[place])
                        instances = instances.fix_val(kind, place, fixed_at[var])
            points |= {_plane(leaf, loops, p) for p in _points(instances)}
        arrows: set[Arrow] = set()
        for conflict in conflicts:
            if conflict.a in leaves and conflict.b in leaves:
                arrows |= set(_arrows(conflict, loops, fixed, fixed_at))
    except islpy.Error:
        return None
    if len(points) < 2:
        return None
    others = ", ".join(f"{var} = {value}" for var, value in fixed_at.items())
    return tuple(sorted(points)), tuple(_direct(arrows)), others


def _fixed(value: Any, fixed: Mapping[str, int]) -> Any:
    """Return an isl set or map for one value of each parameter."""
    kind = islpy.dim_type.param
    for place in range(value.dim(kind)):
        word = value.get_dim_name(kind, place)
        if word in fixed:
            value = value.fix_val(kind, place, fixed[word])
    return value


def _points(instances: Any) -> list[tuple[int, ...]]:
    """Return the points of a bounded set; raises ``islpy.Error`` if it has too many or no bound."""
    found: list[tuple[int, ...]] = []
    kind = islpy.dim_type.set

    def add(point: Any) -> None:
        if len(found) > MAX_PAIRS:
            raise islpy.Error("too many points")
        space = point.get_space().dim(kind)
        found.append(tuple(int(point.get_coordinate_val(kind, k).to_python()) for k in range(space)))

    if not instances.is_bounded():
        raise islpy.Error("no bound")
    instances.foreach_point(add)
    return found


def _plane(leaf: Leaf, loops: Sequence[str], point: Sequence[int]) -> Point:
    """Return the coordinates of an instance in the plane: the inner loop to the right, the outer one down."""
    values = [point[leaf.vars.index(var)] for var in loops]
    return (values[-1], values[0] if len(values) > 1 else 0)


def _arrows(
    conflict: Conflict,
    loops: tuple[str, ...],
    fixed: Mapping[str, int],
    fixed_at: Mapping[str, int],
) -> Iterator[Arrow]:
    """Yield the pairs of different iterations of a conflict, the earlier one first."""
    relation = _fixed(conflict.relation, fixed)
    sides = ((islpy.dim_type.in_, conflict.a), (islpy.dim_type.out, conflict.b))
    for kind, leaf in sides:
        for place, var in enumerate(leaf.vars):
            if var in fixed_at:
                relation = relation.fix_val(kind, place, fixed_at[var])
    a, b, count = conflict.a, conflict.b, len(conflict.a.vars)
    for pair in _points(relation.wrap()):
        start, end = _plane(a, loops, pair[:count]), _plane(b, loops, pair[count:])
        lines = (a.line, b.line)
        if start[::-1] > end[::-1]:
            start, end, lines = end, start, lines[::-1]
        if start != end:
            yield Arrow(start, end, conflict.target, bool(conflict.op), lines)


def _direct(arrows: set[Arrow]) -> Iterator[Arrow]:
    """Yield the arrows that do not follow from two others, each pair of points and target once."""
    after: dict[tuple[str, Point], set[Point]] = defaultdict(set)
    for arrow in arrows:
        after[arrow.target, arrow.start].add(arrow.end)
    seen = set()
    for arrow in sorted(arrows, key=lambda one: (one.target, one.start, one.end, one.commutes, one.lines)):
        ends = after[arrow.target, arrow.start]
        follows = any(arrow.end in after[arrow.target, middle] for middle in ends)
        key = (arrow.target, arrow.start, arrow.end)
        if not follows and key not in seen:
            seen.add(key)
            yield arrow
