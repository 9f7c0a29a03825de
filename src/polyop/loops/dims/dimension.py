"""Find the axes of tensors and the loops that run along one dimension.

    for i in range(x.shape[0]):        x axis 0, y axis 0 and the loop i are one dimension,
        for k in range(x.shape[1]):    x axis 1, w axis 0 and the loop k are another
            y[i] += x[i, k] * w[k]

Two axes are one dimension if a loop variable indexes both by itself, or if one has its size from the other.
What is proved of a dimension holds for calls in which the sizes of its axes are equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from ..analysis import affine
from ..ir.grammar import Expr, For, Kernel, Load, Size, Stmt, Store, statements, walk
from ..ir.rewriter import rewrite

Axis = tuple[str, int]
"""A buffer and the number of an axis."""
Node = tuple[str, str | Axis]


@dataclass(frozen=True)
class Dimension:
    """Axes of one size, and the loops along it.

    ``name`` is that of the author's first loop along it. ``axes`` are those of inputs, outputs and
    temporaries; one of an output or temporary may be shorter by a constant, an attribute or another size.
    ``size`` is the size that stands for all of them; None if no input has an axis of it.
    """

    name: str
    axes: tuple[Axis, ...]
    loops: frozenset[str]
    size: Size | None

    def axis_of(self, buffer: str) -> int | None:
        """Return the axis of a buffer, or None. A buffer with several is refused before this is called."""
        return next((axis for name, axis in self.axes if name == buffer), None)


def find_dimensions(kernel: Kernel) -> list[Dimension]:
    """Return the dimensions of a kernel, those of its parameters first, in their order."""
    groups = _Groups()
    for buffer in kernel.buffers.values():
        for axis, size in enumerate(buffer.outer_shape):
            groups.add(("axis", (buffer.name, axis)))
            origin = _size_with_coefficient_one(size)
            if origin is not None and _is_axis(kernel, origin):
                groups.join(("axis", (buffer.name, axis)), ("axis", (origin.buffer, origin.axis)))
    loops = {s.var: s for s in statements(kernel.body) if isinstance(s, For)}
    for loop in loops.values():
        groups.add(("loop", loop.var))
        origin = _size_with_coefficient_one(loop.hi)
        if origin is not None and _is_axis(kernel, origin):
            groups.join(("loop", loop.var), ("axis", (origin.buffer, origin.axis)))
    for buffer_name, index in _accesses(kernel):
        buffer = kernel.buffers[buffer_name]
        for axis, expr in enumerate(index[: len(buffer.outer_shape)]):
            loop_name = _lone_loop(expr, loops, buffer.role == "local")
            if loop_name is not None:
                groups.join(("loop", loop_name), ("axis", (buffer_name, axis)))
    return _named(kernel, groups.values())


def with_known_sizes(kernel: Kernel, sizes: Mapping[Axis, Expr]) -> Kernel:
    """Return the kernel with the sizes of inputs that follow from those of others written so."""

    def one(expr: Expr) -> Expr:
        return sizes.get((expr.buffer, expr.axis), expr) if isinstance(expr, Size) else expr

    return _with_sizes(kernel, one) if sizes else kernel


def with_one_size_each(kernel: Kernel, dimensions: list[Dimension]) -> Kernel:
    """Return the kernel with the size of each dimension written in one way."""
    sizes = {axis: d.size for d in dimensions if d.size is not None for axis in d.axes}
    inputs = {name for name, buffer in kernel.buffers.items() if buffer.role in ("input", "inplace")}

    def one(expr: Expr) -> Expr:
        if isinstance(expr, Size) and expr.buffer in inputs:
            return sizes.get((expr.buffer, expr.axis)) or expr
        return expr

    return _with_sizes(kernel, one)


def _with_sizes(kernel: Kernel, change: Callable[[Expr], Expr]) -> Kernel:
    buffers = {
        name: replace(buffer, shape=tuple(rewrite(size, change) for size in buffer.shape))
        for name, buffer in kernel.buffers.items()
    }
    return replace(kernel, buffers=buffers, body=tuple(rewrite(s, change) for s in kernel.body))


class _Groups:
    """Disjoint sets of axes and loops."""

    def __init__(self) -> None:
        self._parent: dict[Node, Node] = {}

    def add(self, node: Node) -> Node:
        parent = self._parent.setdefault(node, node)
        return node if parent == node else self.add(parent)

    def join(self, one: Node, other: Node) -> None:
        first, second = self.add(one), self.add(other)
        self._parent[second] = first

    def values(self) -> list[list[Node]]:
        groups: dict[Node, list[Node]] = {}
        for node in self._parent:
            groups.setdefault(self.add(node), []).append(node)
        return list(groups.values())


def _is_axis(kernel: Kernel, size: Size) -> bool:
    """Whether the tensor of a size is present: derived kernels have a scalar in place of an absent one."""
    return size.axis < len(kernel.buffers[size.buffer].shape)


def _size_with_coefficient_one(expr: Expr) -> Size | None:
    """Return the only size that a linear expression adds once, as x.shape[0] in x.shape[0] - k + 1."""
    form = affine.linear(expr)
    if form is None:
        return None
    sizes = {affine.name_of(e): e for e in walk(expr) if isinstance(e, Size)}
    added = [name for name, coefficient in form.items() if name and coefficient > 0]
    return sizes.get(added[0]) if len(added) == 1 and form[added[0]] == 1 else None


def _lone_loop(expr: Expr, loops: dict[str, For], temporary: bool) -> str | None:
    """Return the loop whose variable is an index but for a constant: ``i``, ``i + 1``, ``n - 1 - i``.

    In a temporary, whose size nobody else sees, also ``i + n``.
    """
    form = affine.linear(expr)
    if form is None:
        return None
    variables = [name for name in form if name in loops]
    others = [name for name in form if name and name not in loops]
    if len(variables) != 1:
        return None
    coefficient = form[variables[0]]
    forward = coefficient == 1 and (temporary or not others)
    backward = coefficient == -1 and len(others) == 1 and form[others[0]] == 1
    return variables[0] if forward or backward else None


def _accesses(kernel: Kernel) -> Iterator[tuple[str, tuple[Expr, ...]]]:
    for node in statements(kernel.body):
        yield from _accesses_of(node)


def _accesses_of(node: Stmt) -> Iterator[tuple[str, tuple[Expr, ...]]]:
    if isinstance(node, Store):
        yield node.buffer, node.index
    yield from ((e.buffer, e.index) for e in walk(node) if isinstance(e, Load))


def _named(kernel: Kernel, groups: list[list[Node]]) -> list[Dimension]:
    """Return a dimension for each group that has axes: those of inputs first, in their order."""
    order = {name: number for number, name in enumerate((*kernel.parameters, *kernel.buffers))}
    inputs = kernel.tensor_parameters
    loops = [s.var for s in statements(kernel.body) if isinstance(s, For)]
    used = {*kernel.attributes}

    def place(axis: Axis) -> tuple[bool, int, int]:
        return axis[0] not in inputs, order[axis[0]], axis[1]

    axes_of = {
        k: sorted((n[1] for n in g if isinstance(n[1], tuple)), key=place) for k, g in enumerate(groups)
    }
    dimensions = []
    for k, axes in sorted(
        ((k, axes) for k, axes in axes_of.items() if axes), key=lambda row: place(row[1][0])
    ):
        first, along = axes[0], [v for v in loops if ("loop", v) in groups[k]]
        name = _unused([author_name(v) for v in along] or [f"{first[0]}_{first[1]}"], used)
        size = Size(*first) if first[0] in inputs else None
        dimensions.append(Dimension(name, tuple(axes), frozenset(along), size))
    return dimensions


def author_name(variable: str) -> str:
    """Return the name that the author gave a loop variable; the front end appends _1 to repeated ones."""
    return re.sub(r"_\d+$", "", variable).strip("_") or variable


def _unused(words: list[str], used: set[str]) -> str:
    """Return the first name that is free, and add it to ``used``; else one with a number."""
    name = next((w for w in words if w.isascii() and w not in used), None)
    count = 2
    while name is None or name in used:
        stem = words[0] if words[0].isascii() else "d"
        name, count = f"{stem}{count}", count + 1
    used.add(name)
    return name


class NotSliced(Exception):  # noqa: N818 - no error: it ends the proof of one dimension
    """A dimension has to be whole, because of what ``line`` does. Line 0: no line in particular."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line, self.text = line, text
