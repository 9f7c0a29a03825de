"""Put one more loop around a kernel, whose iterations are the samples.

    for i in range(x.shape[0]):        ->   for sample in range(x.shape[0]):
        y[i] = 2.0 * x[i]                       for i in range(x.shape[1]):
                                                    y[sample, i] = 2.0 * x[sample, i]

Samples are independent of each other, so it is a parallel loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

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
    own_sizes,
)
from ..ir.rewriter import map_body, rewrite, with_sizes
from ..program import Program
from .names import Names


@dataclass(frozen=True)
class Batch(Program):
    """A kernel that is batched."""

    axes: tuple[int | None, ...] = ()
    """For each tensor the axis that counts samples, or None."""


def batch_loop(batch: Batch) -> Batch:
    """Return the batch with a loop over samples around its kernel."""
    return batch.with_(kernel=_batched(batch.kernel, batch.axes))


def _batched(kernel: Kernel, axes: Sequence[int | None]) -> Kernel:
    """Return the kernel with an axis of samples in its tensors, and a loop over samples around its body."""
    names = Names(kernel)
    rows = zip(kernel.tensor_parameters, axes, strict=True)
    mapped = {n: axis for n, axis in rows if axis is not None}
    present = {n: axis for n, axis in mapped.items() if not kernel.buffers[n].absent}
    places = present or dict([*mapped.items()][:1])  # something must tell how many samples there are
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
    batched = replace(
        kernel,
        name=f"{kernel.name}__batched",
        buffers=_buffers(kernel.buffers, shapes, places, size),
        body=(For(sample.name, Const(0, INT), size, body, line),),
    )
    return with_sizes(batched, change)


def _buffers(
    own: Mapping[str, Buffer],
    shapes: Mapping[str, tuple[Expr, ...]],
    places: Mapping[str, int],
    size: Size,
) -> dict[str, Buffer]:
    """Return the buffers with the axis of samples. It comes first, but in inputs, where ``places`` has it."""
    found: dict[str, Buffer] = {}
    for name, buffer in own.items():
        shape = shapes[name]
        if buffer.role != "input":
            shape = (size, *shape)
        elif name in places:
            shape = own_sizes(name, replace(buffer, shape=(size, *shape)))
        found[name] = replace(buffer, shape=shape, absent=buffer.absent and not shape)
    return found
