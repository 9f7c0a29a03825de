"""Replace reads of a one-element temporary by the value it holds, and remove the temporary.

    t[0] = 2.0 * g[0]
    for i in range(n):                 ->    for i in range(n):
        d_x[i] = t[0] * x[i]                     d_x[i] = (2.0 * g[0]) * x[i]

Later steps then see longer perfect nests.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace

from ..analysis.cost import HEAVY
from ..ir.grammar import (
    Assign,
    Expr,
    Kernel,
    Load,
    Op,
    Stmt,
    Store,
    Var,
    statements,
    walk,
)
from ..ir.rewriter import rewrite, with_bodies
from ..ir.uses import stored_by, stores_to, tensors_of
from .derivation import Derivation

MAX_OPERATORS = 4
"""The most operators of a value that is computed again in each iteration of an inner loop; none is slow."""


def forward_substitution(derivation: Derivation) -> Derivation:
    """Return the derivation without adjoints of one element that are stored once, from what stays."""
    names = derivation.adjoints_left(scalars=True)
    return derivation.with_(kernel=forward_substituted(derivation.kernel, names))


def forward_substituted(kernel: Kernel, names: Sequence[str]) -> Kernel:
    """Return the kernel without those temporaries of ``names`` that are stored once, from what stays.

    Inputs stay the same, and so do tensors that no statement writes from the store to the last read.
    """
    for name in names:
        if name not in kernel.buffers or kernel.buffers[name].role != "local":
            continue
        stores = stores_to(name, kernel.body)
        if len(stores) == 1 and len(kernel.buffers[name].shape) == 1 and _is_short(kernel, stores[0]):
            body = substituted_after(kernel.body, stores[0], _to_value(stores[0]))
            if name not in tensors_of(*statements(body)):
                buffers = {n: b for n, b in kernel.buffers.items() if n != name}
                kernel = replace(kernel, body=body, buffers=buffers)
    return kernel


def substituted_after(
    body: Sequence[Stmt], definition: Store | Assign, change: Callable[[Expr], Expr]
) -> tuple[Stmt, ...]:
    """Return a body without ``definition``; ``change`` rewrites what comes after it in the same loop."""
    for position, node in enumerate(body):
        if node is definition:
            return (*body[:position], *(rewrite(s, change) for s in body[position + 1 :]))

    inside = functools.partial(substituted_after, definition=definition, change=change)
    return tuple(with_bodies(node, inside) for node in body)


def _is_short(kernel: Kernel, store: Store) -> bool:
    """Whether a value is cheap to compute again where it is read, and is the same there."""
    nodes = list(walk(store.value))
    operators = [e for e in nodes if isinstance(e, Op)]
    (place,) = (k for k, node in enumerate(kernel.body) if any(s is store for s in statements((node,))))
    # a store outside loops is read by what follows, one in a nest by the nest
    end = len(kernel.body) if kernel.body[place] is store else place + 1
    changing = stored_by(kernel.body[place:end])
    fixed_index = not any(isinstance(e, (Var, Load)) for i in store.index for e in walk(i))
    return (
        not store.op
        and not any(isinstance(e, Load) and e.buffer in changing for e in nodes)
        and fixed_index
        and len(operators) <= MAX_OPERATORS
        and not any(o.name in HEAVY for o in operators)
    )


def _to_value(store: Store) -> Callable[[Expr], Expr]:
    """Return what replaces loads of a stored element by its value."""

    def change(expr: Expr) -> Expr:
        same = isinstance(expr, Load) and (expr.buffer, expr.index) == (store.buffer, store.index)
        return store.value if same else expr

    return change
