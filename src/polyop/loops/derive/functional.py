"""A kernel that writes its inputs, as one that returns new tensors."""

from __future__ import annotations

from dataclasses import replace

from ..ir.grammar import (
    INT,
    Buffer,
    Const,
    For,
    Kernel,
    Load,
    Size,
    Stmt,
    Store,
    Type,
    Var,
    names_of,
    rewrite,
    unused,
)


def functional(kernel: Kernel) -> Kernel:
    """Return the kernel with each tensor that it writes in place as an output that starts as a copy.

    The parameter gets another name, ``x_before``; the kernel's own text goes on with ``x``.
    """
    taken = names_of(kernel)
    buffers: dict[str, Buffer] = {}
    before: dict[str, str] = {}
    start: list[Stmt] = []
    for name, buffer in kernel.buffers.items():
        if buffer.role != "inplace":
            buffers[name] = buffer
            continue
        before[name] = old = unused(f"{name}_before", taken)
        shape = tuple(Size(old, k) for k in range(len(buffer.shape)))
        buffers[old] = replace(buffer, name=old, role="input", shape=shape)
        buffers[name] = replace(buffer, role="output", shape=shape)
        start.append(_copied(buffers[name], old, taken))

    def sized(expr: object) -> object:
        known = isinstance(expr, Size) and expr.buffer in before
        return replace(expr, buffer=before[expr.buffer]) if known and isinstance(expr, Size) else expr

    body = tuple(rewrite(s, sized) for s in kernel.body)  # type: ignore[arg-type]
    buffers = {
        n: replace(b, shape=tuple(rewrite(e, sized) for e in b.shape))  # type: ignore[arg-type]
        for n, b in buffers.items()
    }
    parameters = tuple(before.get(n, n) for n in kernel.parameters)
    return replace(kernel, parameters=parameters, buffers=buffers, body=(*start, *body))


def _copied(buffer: Buffer, old: str, taken: set[str]) -> Stmt:
    names = [unused(f"{buffer.name}_{k}", taken) for k in range(len(buffer.shape))]
    index = tuple(Var(n, INT) for n in names)
    node: Stmt = Store(buffer.name, index, Load(old, index, Type(buffer.dtype), buffer.line), "", buffer.line)
    for var, size in zip(reversed(names), reversed(buffer.shape), strict=True):
        node = For(var, Const(0, INT), size, (node,), buffer.line)
    return node
