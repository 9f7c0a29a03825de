"""Temporaries that only pass a value on are read where the value is: what is left are longer nests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..analysis.cost import HEAVY
from ..ir.grammar import Expr, For, If, Kernel, Load, Op, Stmt, Store, Var, rewrite, statements, walk

FEW = 4
"""Operators that may be done again in each iteration of an inner loop."""


def forwarded(kernel: Kernel, names: Sequence[str]) -> Kernel:
    """Return the kernel without one-element temporaries (of ``names``) that are stored once, from inputs."""
    for name in names:
        if name not in kernel.buffers or kernel.buffers[name].role != "local":
            continue
        stores = [s for s in statements(kernel.body) if isinstance(s, Store) and s.buffer == name]
        if len(stores) == 1 and len(kernel.buffers[name].shape) == 1 and _is_short(kernel, stores[0]):
            body = _without(kernel.body, stores[0])
            if body is not None and not any(_reads(s, name) for s in body):
                buffers = {n: b for n, b in kernel.buffers.items() if n != name}
                kernel = replace(kernel, body=body, buffers=buffers)
    return kernel


def _is_short(kernel: Kernel, store: Store) -> bool:
    nodes = list(walk(store.value))
    operators = [e for e in nodes if isinstance(e, Op)]
    inputs = all(kernel.buffers[e.buffer].role == "input" for e in nodes if isinstance(e, Load))
    fixed = not any(isinstance(e, (Var, Load)) for i in store.index for e in walk(i))
    return (
        not store.op
        and inputs
        and fixed
        and len(operators) <= FEW
        and not any(o.name in HEAVY for o in operators)
    )


def _without(body: tuple[Stmt, ...], store: Store) -> tuple[Stmt, ...] | None:
    """Return a body without the store, what reads it afterwards in the same body changed; None without it."""
    for number, node in enumerate(body):
        if node is store:
            return (*body[:number], *(_written(s, store) for s in body[number + 1 :]))
        if isinstance(node, For):
            inner = _without(node.body, store)
            if inner is not None:
                return (*body[:number], replace(node, body=inner), *body[number + 1 :])
        if isinstance(node, If):
            then, other = _without(node.body, store), _without(node.orelse, store)
            if then is not None or other is not None:
                changed = replace(
                    node,
                    body=node.body if then is None else then,
                    orelse=node.orelse if other is None else other,
                )
                return (*body[:number], changed, *body[number + 1 :])
    return None


def _written(node: Stmt, store: Store) -> Stmt:
    def change(expr: Expr) -> Expr:
        same = isinstance(expr, Load) and (expr.buffer, expr.index) == (store.buffer, store.index)
        return store.value if same else expr

    changed: Stmt = rewrite(node, change)
    return changed


def _reads(node: Stmt, name: str) -> bool:
    return any(isinstance(e, Load) and e.buffer == name for s in statements((node,)) for e in walk(s))
