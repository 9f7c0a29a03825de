"""Turn a kernel that writes its inputs in place into one that returns new tensors.

x[i] += 1.0     ->     x[i] = x_before[i]     in a loop over all elements
                       x[i] += 1.0
"""

from __future__ import annotations

from dataclasses import replace

from ..ir.grammar import (
    INT,
    Buffer,
    Expr,
    Kernel,
    Load,
    Size,
    Stmt,
    Store,
    Type,
    Var,
    names_of,
    own_sizes,
    unused,
)
from ..ir.rewriter import loops_over, nested, rewrite, with_sizes


def functional(kernel: Kernel) -> Kernel:
    """Return the kernel in which each tensor that it wrote in place is an output, which starts as a copy.

    The parameter is renamed to ``x_before``; ``x`` is the output.
    """
    used_names = names_of(kernel)
    buffers: dict[str, Buffer] = {}
    before: dict[str, str] = {}
    copies: list[Stmt] = []
    for name, buffer in kernel.buffers.items():
        if buffer.role != "inplace":
            buffers[name] = buffer
            continue
        before[name] = old = unused(f"{name}_before", used_names)
        shape = own_sizes(old, buffer)
        buffers[old] = replace(buffer, name=old, role="input", shape=shape)
        buffers[name] = replace(buffer, role="output", shape=shape)
        copies.append(_copy(buffers[name], old, used_names))

    def renamed(expr: Expr) -> Expr:
        if isinstance(expr, Size) and expr.buffer in before:
            return replace(expr, buffer=before[expr.buffer])
        return expr

    body = tuple(rewrite(s, renamed) for s in kernel.body)
    buffers = {n: replace(b, shape=tuple(rewrite(e, renamed) for e in b.shape)) for n, b in buffers.items()}
    parameters = tuple(before.get(n, n) for n in kernel.parameters)
    changed = replace(kernel, parameters=parameters, buffers=buffers, body=(*copies, *body))
    return with_sizes(changed, renamed)


def _copy(buffer: Buffer, old: str, used_names: set[str]) -> Stmt:
    """Return loops that copy the tensor ``old`` into a buffer."""
    names = [unused(f"{buffer.name}_{k}", used_names) for k in range(len(buffer.shape))]
    index = tuple(Var(n, INT) for n in names)
    value = Load(old, index, Type(buffer.dtype), buffer.line)
    loops = loops_over(names, buffer.shape, buffer.line)
    return nested(loops, Store(buffer.name, index, value, "", buffer.line))
