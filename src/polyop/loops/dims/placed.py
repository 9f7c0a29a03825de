"""The kernel of a slice that gets the slice's offset in the whole as attributes.

    y[i] = x[i] * i        for i in max(0, begin) .. min(n, end):
                     ->        y[i - start] = x[i - start] * i

Its loops count as those of the whole do, its tensors hold the elements from ``start`` on, and a size that is
used as a value is that of the whole. So an index may be a value, a border stays where it is, and neighbours
that are read are not added twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..analysis import affine
from ..ir.grammar import (
    INT,
    Const,
    Demand,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Size,
    Stmt,
    Store,
    Var,
    names_of,
    statements,
    unused,
)
from ..ir.operate import operate
from ..ir.printing import expression
from ..ir.rewriter import rewrite
from .derive import Slicing, prepared
from .dimension import Axis, find_dimensions
from .halo import ZERO, Radius, added, join


class Place(NamedTuple):
    """The names of the attributes that say where a slice is, all counted in the whole.

    ``begin``, ``end``: the slice. ``start``: the first element that its tensors hold. ``size``: of the whole.
    """

    begin: str
    end: str
    start: str
    size: str


def placed_kernel(
    kernel: Kernel, slicing: Slicing, sizes: Mapping[Axis, Expr] | None = None, place: Place | None = None
) -> tuple[Kernel, Place]:
    """Return the kernel of a slice, and the attributes that it takes beside those of ``kernel``.

    Its tensors are cut as those of a slice with its halo. Elements of its outputs outside of the slice have
    no meaning; outputs without the dimension are those of the slice alone. ``sizes``: see ``derive_slicing``.
    ``place`` are the attributes' names, which the kernel must not use; without it they are chosen.
    """
    kernel = prepared(kernel, sizes or {})
    if place is None:
        taken = names_of(kernel)
        place = Place(*(unused(f"{slicing.dimension.name}_{word}", taken) for word in Place._fields))
    new = dict.fromkeys(place, INT)
    placement = _Placement(kernel, slicing, place)
    placed = replace(
        kernel,
        body=placement.body(kernel.body, None),
        attributes={**kernel.attributes, **new},
        parameters=(*kernel.parameters, *new),
        demands=tuple(placement.demands()),
    )
    return placed, place


@dataclass(frozen=True)
class _Region:
    """The loop around a statement along the dimension: the coordinate of an iteration, and where it runs.

    ``radius`` is how far around the slice it runs. None: that is not known, so it runs over all of the whole,
    and each statement in it has a guard.
    """

    coordinate: Expr
    radius: Radius | None


class _Placement:
    """Rewrites the statements of one kernel for a slice along one dimension."""

    def __init__(self, kernel: Kernel, slicing: Slicing, place: Place) -> None:
        size = slicing.dimension.size
        self.slicing = slicing
        self.dimension = next(d for d in find_dimensions(kernel) if d.size == size)  # with all temporaries
        self.begin, self.end, self.start, self.size = (
            Var(name, INT) for name in (place.begin, place.end, place.start, place.size)
        )
        self.leaves = _leaves(kernel)
        self.assumed = slicing.halo.assumed

    def demands(self) -> Iterator[Demand]:
        """Yield what is true of each slice with its halo: so the indices in its tensors need no checks.

        Call it after :meth:`body`, which compares further radii.
        """
        length, zero = self.dimension.size, Const(0, INT)
        assert length is not None
        end, halo = self.start + length, self.slicing.halo
        first, past = self._ends(halo)
        within_first, within_past = self.start <= first, end >= past
        if any(name for width in (halo.before, halo.after) for name in width):  # such a width may be negative
            within_first = operate("and", within_first, self.start <= self.begin)
            within_past = operate("and", within_past, end >= self.end)
        starts = operate("or", self.start <= zero, within_first)
        ends = operate("or", end >= self.size, within_past)
        inside = operate("and", self.start >= zero, end <= self.size)
        has = f"the tensors of a slice along {self.dimension.name} begin at {self.start.name}"
        yield Demand(inside, f"{has}, and must be inside of 0 to {self.size.name}")
        yield Demand(starts, f"{has}, and must begin at {expression(operate('max', zero, first))} or before")
        yield Demand(ends, f"{has}, and must end at {expression(operate('min', self.size, past))} or later")
        for form in sorted(self.assumed):
            more = affine.from_linear(dict(form), self.leaves)
            rule = f"{expression(more)} must be at least 0, for slices along {self.dimension.name}"
            yield Demand(more >= 0, rule)

    def body(self, body: Sequence[Stmt], region: _Region | None) -> tuple[Stmt, ...]:
        """Return statements inside a loop along the dimension, or inside none."""
        return tuple(self._statement(node, region) for node in body)

    def _statement(self, node: Stmt, region: _Region | None) -> Stmt:
        match node:
            case For():
                return self._loop(node, region)
            case If():
                return self._condition(node, region)
        return self._guarded(node, region)

    def _condition(self, node: If, region: _Region | None) -> If:
        """Return a condition, evaluated only where a statement inside needs it: it may read tensors."""
        inner = region
        if region is not None:
            inner = _Region(region.coordinate, self._radius_of_body((node,), region.coordinate))
        then, other = (self.body(part, inner) for part in (node.body, node.orelse))
        moved = replace(node, condition=self._moved(node.condition), body=then, orelse=other)
        if region is None or inner is None or inner.radius is None or inner == region:
            return moved
        return If(self._inside(region.coordinate, inner.radius), (moved,), (), node.line)

    def _loop(self, loop: For, region: _Region | None) -> For:
        lo, hi = self._moved(loop.lo), self._moved(loop.hi)
        if loop.var not in self.dimension.loops:
            return replace(loop, lo=lo, hi=hi, body=self.body(loop.body, region))
        rising = self.slicing.directions.get(loop.var, 1) > 0
        variable = Var(loop.var, INT)
        last = self.size - 1
        coordinate = variable if rising else last - variable
        radius = self._radius_of_body(loop.body, coordinate)
        if radius is not None:
            first, past = self._ends(radius)
            if not rising:
                first, past = self.size - past, self.size - first
            lo, hi = operate("max", lo, first), operate("min", hi, past)
        return replace(loop, lo=lo, hi=hi, body=self.body(loop.body, _Region(coordinate, radius)))

    def _radius_of_body(self, body: Sequence[Stmt], coordinate: Expr) -> Radius | None:
        """Return how far around the slice a body has to run for all of its statements; None if not known."""
        leaves = [node for node in statements(tuple(body)) if not isinstance(node, (For, If))]
        first, *others = (self._radius_in_loop(node, coordinate) for node in leaves)
        widest = first
        for radius in others:
            widest = None if widest is None or radius is None else join(widest, radius)
        self.assumed |= frozenset() if widest is None else widest.assumed
        return widest

    def _radius_in_loop(self, node: Stmt, coordinate: Expr) -> Radius | None:
        """Return the radius of a statement, counted from its loop's coordinate and not from its own."""
        own, radius = self._coordinate(node), self._radius(node)
        if own is None:
            return radius
        shift = affine.linear(own - coordinate)
        if shift is None or not shift.keys() <= {"", *self.leaves}:
            return None
        before, after = added(radius.before, shift), added(radius.after, shift, -1)
        return radius._replace(before=before, after=after)

    def _guarded(self, node: Stmt, region: _Region | None) -> Stmt:
        """Return a statement that runs only where an output of the slice needs it."""
        moved = rewrite(node, self._moved_leaf)
        if isinstance(node, Store):
            moved = replace(moved, index=self._index(node.buffer, moved.index))
        result: Stmt = moved
        if region is None:
            coordinate, runs = self._coordinate(node), None
        else:
            coordinate = self._coordinate(node) or region.coordinate
            runs = region.radius
        if coordinate is None or (
            region is not None and runs is not None and runs == self._radius_in_loop(node, region.coordinate)
        ):
            return result
        return If(self._inside(coordinate, self._radius(node)), (result,), (), node.line)

    def _inside(self, coordinate: Expr, radius: Radius) -> Expr:
        first, past = self._ends(radius)
        return operate("and", coordinate >= first, coordinate < past)

    def _ends(self, radius: Radius) -> tuple[Expr, Expr]:
        """Return the first coordinate of a slice with a radius, and the one past its last."""
        first = self.begin - affine.from_linear(radius.before, self.leaves)
        return first, self.end + affine.from_linear(radius.after, self.leaves)

    def _coordinate(self, node: Stmt) -> Expr | None:
        """Return the coordinate of the element that a statement writes, if that has the dimension."""
        if not isinstance(node, Store):
            return None
        axis = self.dimension.axis_of(node.buffer)
        return None if axis is None else self._moved(node.index[axis])

    def _radius(self, node: Stmt) -> Radius:
        name = node.buffer if isinstance(node, Store) else getattr(node, "name", "")
        return self.slicing.radii.get(name, ZERO)

    def _moved(self, expr: Expr) -> Expr:
        result: Expr = rewrite(expr, self._moved_leaf)
        return result

    def _moved_leaf(self, expr: Expr) -> Expr:
        if isinstance(expr, Load):
            return replace(expr, index=self._index(expr.buffer, expr.index))
        return self.size if expr == self.dimension.size else expr

    def _index(self, buffer: str, index: tuple[Expr, ...]) -> tuple[Expr, ...]:
        axis = self.dimension.axis_of(buffer)
        return tuple(e - self.start if k == axis else e for k, e in enumerate(index))


def _leaves(kernel: Kernel) -> dict[str, Expr]:
    """Return the sizes of inputs and the attributes by their names in linear forms."""
    leaves: list[Var | Size] = [Var(name, kind) for name, kind in kernel.attributes.items()]
    for name in kernel.parameters:
        if name in kernel.buffers:
            leaves += [Size(name, axis) for axis in range(len(kernel.buffers[name].outer_shape))]
    return {affine.name_of(leaf): leaf for leaf in leaves}
