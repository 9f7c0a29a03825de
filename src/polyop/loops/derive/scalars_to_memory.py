"""Store scalars in memory, as buffers of one element.

    s = 0.0                         s[0] = 0.0
    for j in range(m):        ->    for j in range(m):
        s += x[i, j]                    s[0] += x[i, j]

Derivations then know one kind of value, an element of a buffer, and one notion of where it is written and
read. A scalar's scope, the loops whose iterations each have their own, becomes the owner of its buffer.
"""

from __future__ import annotations

from dataclasses import replace

from ..analysis.polyhedra import scalar_owners
from ..ir.grammar import (
    Assign,
    Buffer,
    Expr,
    Kernel,
    Load,
    Type,
    Var,
    statements,
)
from ..ir.rewriter import with_places
from .derivation import SCALAR_INDEX, SCALAR_SHAPE, Derivation


def scalars_to_memory(derivation: Derivation) -> Derivation:
    """Return the derivation without scalars."""
    kernel = derivation.kernel
    owners = {**scalar_owners(kernel), **derivation.owners}
    return derivation.with_(kernel=_stored(kernel), owners=owners)


def _stored(kernel: Kernel) -> Kernel:
    """Return the kernel with a buffer of one element in place of each scalar."""
    types = {s.name: s.type for s in statements(kernel.body) if isinstance(s, Assign)}
    if not types:
        return kernel
    first_lines = {s.name: s.line for s in reversed(list(statements(kernel.body))) if isinstance(s, Assign)}
    scalars = {
        name: Buffer(name, type_.dtype, SCALAR_SHAPE, "local", first_lines[name])
        for name, type_ in types.items()
    }

    def place(expr: Var | Load) -> Expr:
        if isinstance(expr, Var) and expr.name in scalars:
            return Load(expr.name, SCALAR_INDEX, Type(expr.type.dtype))
        return expr

    return replace(kernel, body=with_places(kernel.body, place), buffers={**kernel.buffers, **scalars})
