"""Batching: a kernel with one more loop around it, whose iterations are the samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..ir.grammar import (
    INT,
    Assign,
    Buffer,
    Const,
    Expr,
    For,
    Kernel,
    Load,
    Size,
    Stmt,
    Store,
    Var,
    map_body,
    rewrite,
)
from .names import Names


def batched(kernel: Kernel, dims: Sequence[int | None]) -> Kernel:
    """Return a typed kernel over samples; ``dims``: the axis of each tensor that counts them, or None.

    A tensor with such an axis has one more dimension; an output has the samples first. The kernel must
    write no input, and one tensor at least must have samples.
    """
    names = Names(kernel)
    tensors = [n for n in kernel.parameters if n in kernel.buffers]
    places = {n: d for n, d in zip(tensors, dims, strict=True) if d is not None}
    counted = next(iter(places.items()))
    places |= {n: 0 for n, b in kernel.buffers.items() if b.role != "input"}
    sample = Var(names.new("sample"), INT)

    def indexed(name: str, index: tuple[Expr, ...]) -> tuple[Expr, ...]:
        at = places.get(name)
        return index if at is None else (*index[:at], sample, *index[at:])

    def change(expr: Expr) -> Expr:
        match expr:
            case Load(buffer=name, index=index):
                return replace(expr, index=indexed(name, index))
            case Size(buffer=name, axis=axis):
                return replace(expr, axis=axis + (name in places and axis >= places[name]))
        return expr

    def stored(node: Store | Assign) -> Sequence[Stmt]:
        return (replace(node, index=indexed(node.buffer, node.index)) if isinstance(node, Store) else node,)

    size = Size(*counted)
    body = map_body([rewrite(node, change) for node in kernel.body], stored)
    line = body[0].line if body else 0
    shapes = {
        n: tuple(rewrite(e, change) for e in b.shape) if b.role != "input" else b.shape
        for n, b in kernel.buffers.items()
    }
    return replace(
        kernel,
        name=f"{kernel.name}__batched",
        buffers=_buffers(kernel.buffers, shapes, places, size),
        body=(For(sample.name, Const(0, INT), size, body, line),),
    )


def _buffers(
    own: Mapping[str, Buffer],
    shapes: Mapping[str, tuple[Expr, ...]],
    places: Mapping[str, int],
    size: Size,
) -> dict[str, Buffer]:
    found: dict[str, Buffer] = {}
    for name, buffer in own.items():
        shape = shapes[name]
        if buffer.role != "input":
            shape = (size, *shape)
        elif name in places:
            shape = tuple(Size(name, k) for k in range(len(shape) + 1))
        found[name] = replace(buffer, shape=shape)
    return found
