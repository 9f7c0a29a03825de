"""What the sweep leaves behind is taken away.

zeros       that nobody reads, or that are overwritten first
copies      of output gradients that nothing is added to
additions   to an element that nothing was added to before: they are stores
stores      that one statement reads: it computes them itself
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..analysis.polyhedra import Leaf
from ..analysis.session import IslSession
from ..ir.grammar import (
    INT,
    Assign,
    Buffer,
    Const,
    Expr,
    Kernel,
    Load,
    Stmt,
    Store,
    Type,
    map_body,
    rewrite,
    statements,
)
from ..ir.types import cast
from .forward_substitution import forward_substituted
from .inline_adjoints import passed_on
from .memory import scopes_of
from .order import Order
from .scatter_to_gather import gather


def tidy(kernel: Kernel, session: IslSession, sums: Sequence[str], copies: Mapping[str, str]) -> Kernel:
    """Return the kernel without them.

    ``sums`` are the buffers that gradients are added up in, ``copies`` of them with what they start as.
    """
    kernel = without_zeros(kernel, session, sums)
    kernel = _without_copies(kernel, copies)
    scalars = [n for n in sums if n in kernel.buffers and kernel.buffers[n].shape == (Const(1, INT),)]
    kernel = forward_substituted(stored_first(kernel, session, scalars), scalars)
    left = [n for n in sums if n in kernel.buffers]
    return passed_on(stored_first(gather(kernel, session, left), session, left), session, left)


def without_zeros(kernel: Kernel, session: IslSession, sums: Sequence[str]) -> Kernel:
    """Return the kernel without zeros that are stored and not read."""
    order = _order(kernel, session, sums)
    local = {n for n in sums if kernel.buffers[n].role == "local"}
    dead = {
        leaf.id
        for leaf in order.model.leaves
        if isinstance(leaf.node, Store)
        and leaf.node.buffer in local
        and is_zero(leaf.node)
        and order.is_dead(leaf)
    }
    return _kept(kernel, order, dead)


def stored_first(kernel: Kernel, session: IslSession, sums: Sequence[str]) -> Kernel:
    """Return the kernel with first additions as stores, and without the zeros that this makes needless."""
    order = _order(kernel, session, sums)
    first = {leaf.id for leaf in order.model.leaves if _is_first(order, leaf, sums)}
    if not first:
        return kernel
    numbers = {leaf.id: k for k, leaf in enumerate(order.model.leaves)}
    chosen = {numbers[name] for name in first}
    kernel = _changed(kernel, lambda k, s: replace(s, op="") if k in chosen else s)
    return without_zeros(kernel, session, sums)  # stored before any addition


def is_zero(node: Stmt) -> bool:
    """Whether a statement stores a zero."""
    return isinstance(node, Store) and not node.op and isinstance(node.value, Const) and node.value.value == 0


def _order(kernel: Kernel, session: IslSession, sums: Sequence[str]) -> Order:
    local = [n for n in sums if kernel.buffers[n].role == "local"]
    return Order(kernel, session, scopes_of(kernel, session, local))


def _is_first(order: Order, leaf: Leaf, sums: Sequence[str]) -> bool:
    node = leaf.node
    if not isinstance(node, Store) or node.op != "+" or node.buffer not in sums:
        return False
    return order.touches_once(leaf) and not order.touched_before(leaf, lambda other: is_zero(other.node))


def _without_copies(kernel: Kernel, copies: Mapping[str, str]) -> Kernel:
    for name, start in copies.items():
        stores = [s for s in statements(kernel.body) if isinstance(s, Store) and s.buffer == name]
        if len(stores) > 1 or name not in kernel.buffers:
            continue
        kernel = _changed(kernel, lambda _, s, name=name: None if s.buffer == name else s)  # type: ignore[misc]
        body = tuple(rewrite(s, _renaming(name, kernel.buffers[start])) for s in kernel.body)
        buffers = {n: b for n, b in kernel.buffers.items() if n != name}
        kernel = replace(kernel, body=body, buffers=buffers)
    return kernel


def _renaming(old: str, new: Buffer) -> Callable[[Expr], Expr]:
    def change(expr: Expr) -> Expr:
        if not isinstance(expr, Load) or expr.buffer != old:
            return expr
        return cast(replace(expr, buffer=new.name, type=Type(new.dtype)), expr.type)

    return change


def _kept(kernel: Kernel, order: Order, dead: set[str]) -> Kernel:
    numbers = {k for k, leaf in enumerate(order.model.leaves) if leaf.id in dead}
    return _changed(kernel, lambda k, s: None if k in numbers else s) if numbers else kernel


def _changed(kernel: Kernel, change: Callable[[int, Store], Stmt | None]) -> Kernel:
    """Return the kernel with its stores changed, by their number among leaves; None takes one out."""
    count = itertools.count()

    def changed(node: Store | Assign) -> Sequence[Stmt]:
        number = next(count)
        result = change(number, node) if isinstance(node, Store) else node
        return () if result is None else (result,)

    return replace(kernel, body=map_body(kernel.body, changed, drop_empty=True))
