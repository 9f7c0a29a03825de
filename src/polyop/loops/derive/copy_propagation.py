"""Copy propagation: read an output's gradient where it is, if nothing is added to its copy.

    for i in range(n):                       (gone)
        d_y_now[i] = d_y[i]
    for i in range(n):                       for i in range(n):
        d_x[i] += d_y_now[i] * w[i]    ->        d_x[i] += d_y[i] * w[i]

The copy is needed where an output is read or overwritten: its adjoint then changes on the way back.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir.grammar import Buffer, Expr, Kernel, Load, Type
from ..ir.rewriter import rewrite
from ..ir.types import cast
from ..ir.uses import stores_to
from .dead_zeros import with_stores
from .derivation import Derivation


def copy_propagation(derivation: Derivation) -> Derivation:
    """Return the derivation without copies of output gradients that nothing changes."""
    kernel = derivation.kernel
    for name, source in derivation.copies.items():
        if len(stores_to(name, kernel.body)) <= 1 and name in kernel.buffers:
            kernel = _without_copy(kernel, name, kernel.buffers[source])
    return derivation.with_(kernel=kernel)


def _without_copy(kernel: Kernel, name: str, source: Buffer) -> Kernel:
    """Return the kernel that reads ``source`` in place of its copy ``name``."""

    def change(expr: Expr) -> Expr:
        if not isinstance(expr, Load) or expr.buffer != name:
            return expr
        return cast(replace(expr, buffer=source.name, type=Type(source.dtype)), expr.type)

    kernel = with_stores(kernel, lambda _, s: None if s.buffer == name else s)
    body = tuple(rewrite(s, change) for s in kernel.body)
    return replace(kernel, body=body, buffers={n: b for n, b in kernel.buffers.items() if n != name})
