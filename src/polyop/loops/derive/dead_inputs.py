"""Make inputs that a derived kernel does not read absent, so that frameworks need not keep them.

An absent input stays among the parameters, without dimensions. If a kernel reads only a size of an input, and
an input that it needs anyway has the same size, that size is read instead:

    x.shape[0]  ->  d_y.shape[0]
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..ir.grammar import Expr, Kernel, Load, Size, Stmt, statements, walk
from ..ir.rewriter import rewrite, with_sizes
from ..ir.uses import tensors_of

if TYPE_CHECKING:
    from .derivation import Derivation  # late: a process whose kernels are all built needs no pass


def dead_inputs(derivation: Derivation) -> Derivation:
    """Return the derivation with absent inputs in place of those that its kernel does not read."""
    kernel = without_dead_inputs(derivation.kernel, dict(derivation.shapes), derivation.required)
    return derivation.with_(kernel=kernel)


def without_dead_inputs(
    kernel: Kernel, shapes: dict[str, tuple[Expr, ...]], required: frozenset[str]
) -> Kernel:
    """Return the kernel with absent inputs in place of those of which no element and no size is read.

    ``shapes`` has the shapes of tensors, in sizes of the inputs: a size of an input whose elements are not
    read is replaced by an equal size of one that is read, or of one of ``required``, which callers
    have anyway.
    """
    read = tensors_of(*statements(kernel.body)) | required
    same: dict[Size, Size] = {}
    for name, shape in shapes.items():  # in order: that of a set differs between processes
        for axis, size in enumerate(shape if name in read else ()):
            if isinstance(size, Size) and size.buffer not in read:
                same.setdefault(size, Size(name, axis))

    def change(expr: Expr) -> Expr:
        return same.get(expr, expr) if isinstance(expr, Size) else expr

    body: tuple[Stmt, ...] = tuple(rewrite(s, change) for s in kernel.body)
    buffers = {
        n: b if b.role == "input" else replace(b, shape=tuple(rewrite(e, change) for e in b.shape))
        for n, b in kernel.buffers.items()
    }
    kernel = replace(kernel, body=body, buffers=buffers)
    used = used_buffers(kernel)
    absent = {
        n: replace(b, shape=(), dtype="bool", pairs=False, absent=True)
        for n, b in buffers.items()
        if b.role == "input" and n not in used
    }
    return with_sizes(replace(kernel, buffers={**buffers, **absent}), change)


def used_buffers(kernel: Kernel) -> frozenset[str]:
    """Return the buffers of which a kernel reads an element or a size."""
    shapes = [size for b in kernel.buffers.values() if b.role != "input" for size in b.shape]
    nodes = (e for top in (*statements(kernel.body), *shapes) for e in walk(top))
    return frozenset(e.buffer for e in nodes if isinstance(e, (Load, Size)))
