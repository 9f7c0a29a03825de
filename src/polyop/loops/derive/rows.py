"""The loop kernel for tensors with strided rows: a slice of columns, heads that are transposed.

    x = whole[:, 5:9]              x.shape[0]    ->   x.shape[0]
    for i in range(x.shape[0]):    x.shape[1]    ->   x_size_1, an attribute
        for j in range(x.shape[1]):
            y[i, j] = x[i, j]      x is a dense tensor, whose rows are as long as those of ``whole``

Dimension k of the dense tensor has dimension ``order[k]`` of the author's, from its first element on. The
last dimension is the last in both, so that neighbours in a row stay neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from ..ir.grammar import (
    BOOL,
    INT,
    Demand,
    Expr,
    Kernel,
    Load,
    Op,
    Size,
    Var,
    names_of,
    unused,
)
from ..ir.rewriter import rewrite


class Rows(NamedTuple):
    """How a tensor lies. ``has_gap``: whether a dimension of the dense tensor is longer than the author's."""

    order: tuple[int, ...]
    has_gap: tuple[bool, ...]


class InRows(NamedTuple):
    """A kernel for tensors in rows. ``sizes``: the attribute that is the size of an axis of the author's."""

    kernel: Kernel
    sizes: Mapping[tuple[str, int], str]


def in_rows(kernel: Kernel, tensors: Mapping[str, Rows]) -> InRows:
    """Return the kernel for inputs that lie in rows; they are read, and not written."""
    used_names = names_of(kernel)
    author: dict[tuple[str, int], Expr] = {}
    names: dict[tuple[str, int], str] = {}
    demands: list[Demand] = []
    for name, (order, has_gap) in tensors.items():
        for k, axis in enumerate(order):
            author[name, axis] = size = Size(name, k)
            if has_gap[k]:
                names[name, axis] = unused(f"{name}_size_{axis}", used_names)
                author[name, axis] = inner = Var(names[name, axis], INT)
                fits = Op("<=", (inner, size), BOOL)
                demands.append(Demand(fits, f"a row of {name} is longer than the memory that has it"))

    def change(expr: Expr) -> Expr:
        if isinstance(expr, Size):
            return author.get((expr.buffer, expr.axis), expr)
        if isinstance(expr, Load) and expr.buffer in tensors:
            return replace(expr, index=tuple(expr.index[axis] for axis in tensors[expr.buffer].order))
        return expr

    buffers = {
        name: replace(buffer, shape=tuple(Size(name, k) for k in range(len(buffer.shape))))
        if name in tensors
        else replace(buffer, shape=tuple(rewrite(size, change) for size in buffer.shape))
        for name, buffer in kernel.buffers.items()
    }
    old = (replace(d, condition=rewrite(d.condition, change)) for d in kernel.demands)
    changed = replace(
        kernel,
        parameters=(*kernel.parameters, *names.values()),
        attributes={**kernel.attributes, **dict.fromkeys(names.values(), INT)},
        buffers=buffers,
        body=tuple(rewrite(node, change) for node in kernel.body),
        demands=(*old, *demands),
    )
    return InRows(changed, names)
