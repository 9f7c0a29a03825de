"""Remove zeros that are stored and never read: overwritten first, or read by nobody.

    d_x[i] = 0.0                (gone)
    d_x[i] = d_y[i] * w[i]      d_x[i] = d_y[i] * w[i]

What a statement overwrites has the adjoint zero before it, so ``reverse`` stores many zeros.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

from ..analysis.session import IslSession
from ..ir.grammar import Assign, Const, Kernel, Stmt, Store
from ..ir.rewriter import map_body
from .derivation import Derivation
from .order import Order
from .scopes import scopes_of


def dead_zeros(derivation: Derivation) -> Derivation:
    """Return the derivation without zeros of adjoints that nobody reads."""
    adjoints = derivation.adjoints_left()
    return derivation.with_(kernel=without_dead_zeros(derivation.kernel, derivation.session, adjoints))


def without_dead_zeros(kernel: Kernel, session: IslSession, adjoints: Sequence[str]) -> Kernel:
    """Return the kernel without zeros that are stored in local adjoints and not read."""
    order = order_of(kernel, session, adjoints)
    local = {n for n in adjoints if kernel.buffers[n].role == "local"}
    dead = {
        number
        for number, leaf in enumerate(order.model.leaves)
        if isinstance(leaf.node, Store)
        and leaf.node.buffer in local
        and is_zero(leaf.node)
        and order.is_dead(leaf)
    }
    return with_stores(kernel, lambda number, s: None if number in dead else s) if dead else kernel


def order_of(kernel: Kernel, session: IslSession, adjoints: Sequence[str]) -> Order:
    """Return the order of a kernel's accesses; local adjoints have scopes."""
    local = [n for n in adjoints if kernel.buffers[n].role == "local"]
    return Order(kernel, session, scopes_of(kernel, session, local))


def is_zero(node: Stmt) -> bool:
    """Whether a statement stores a zero."""
    return isinstance(node, Store) and not node.op and isinstance(node.value, Const) and node.value.value == 0


def with_stores(kernel: Kernel, change: Callable[[int, Store], Stmt | None]) -> Kernel:
    """Return the kernel with its stores changed, by their number among leaves; None takes one out.

    Loops and conditions around nothing go.
    """
    numbers = itertools.count()

    def changed(node: Store | Assign) -> Sequence[Stmt]:
        number = next(numbers)
        result = change(number, node) if isinstance(node, Store) else node
        return () if result is None else (result,)

    return replace(kernel, body=map_body(kernel.body, changed, drop_empty=True))
