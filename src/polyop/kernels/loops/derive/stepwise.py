"""Updates that are written out as assignments, because what they find matters to the derivative.

A ``max`` over a loop hands everything to the element that has the result's value. That holds if the
result is there in the end, nobody reads what the maximum was meanwhile, and the element can be
computed again to the last bit. Else ``m = max(m, e)`` is an assignment that reads m, step by step.
The same goes for an addition whose value may read the element that it is added to.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir import Expr, For, If, Kernel, Load, Op, Stmt, Store, Type, children, statements
from ..operate import operate
from ..polyhedra import Leaf
from ..types import kind
from .activity import active, is_real
from .memory import Scopes
from .order import Order
from .partials import number, pull

EXACT = frozenset(("cast", "neg", "abs", "max", "min", "sign", "floor", "ceil", "trunc", "round"))
"""What is never rounded: it has the same value wherever the compiler puts it."""


def stepwise(kernel: Kernel, scopes: Scopes) -> Kernel:
    """Return a kernel without scalars in which no update needs a value that its result does not tell."""
    if not any(s.op and is_real(kernel, s.buffer) for s in statements(kernel.body) if isinstance(s, Store)):
        return kernel
    order = Order(kernel, {n: s for n, s in scopes.items() if kernel.buffers[n].role == "local"})
    inputs = [n for n, b in kernel.buffers.items() if b.role == "input" and is_real(kernel, n)]
    moving = active(kernel, inputs, [n for n in kernel.outputs if is_real(kernel, n)])
    turned = {
        (node.buffer, node.op)
        for leaf in order.model.leaves
        if isinstance(node := leaf.node, Store) and node.op in ("max", "min")
        if node.buffer in moving and not _result_tells(order, leaf, node, moving)
    }
    single = {id(leaf.node) for leaf in order.model.leaves if leaf.node.op == "+" and order.reads_own(leaf)}

    def written(node: Stmt) -> Stmt:
        match node:
            case For(body=body):
                return replace(node, body=tuple(map(written, body)))
            case If(body=body, orelse=orelse):
                return replace(node, body=tuple(map(written, body)), orelse=tuple(map(written, orelse)))
            case Store(buffer=buffer, op=op) if (buffer, op) in turned or id(node) in single:
                own = Load(buffer, node.index, Type(kernel.buffers[buffer].dtype), node.line)
                # of equal elements the last one comes first: what is equal goes to it
                return replace(node, op="", value=operate(op, node.value, own))
        return node

    return replace(kernel, body=tuple(map(written, kernel.body)))


def _result_tells(order: Order, leaf: Leaf, node: Store, moving: frozenset[str]) -> bool:
    """Whether the result of a max or min tells which element it is."""
    alike = frozenset(
        x.id
        for x in order.model.leaves
        if isinstance(x.node, Store) and (x.node.buffer, x.node.op) == (node.buffer, node.op)
    )
    others = frozenset(x.id for x in order.model.leaves) - alike
    return (
        bool(pull(node.value, number(1.0, node.value.type), lambda load: load.buffer in moving))
        and _is_exact(node.value)
        and all(order.overwritten(leaf, access, others) is None for access in order.updates(leaf))
        and not _is_read_between(order, node.buffer, alike)
    )


def _is_read_between(order: Order, buffer: str, alike: frozenset[str]) -> bool:
    """Whether an element may be read between two of the updates: what it is then is not their result."""
    return any(
        any(writer.id in alike for writer in order.written_before(reader, access))
        and order.overwritten(reader, access, alike) is not None
        for reader in order.model.leaves
        for access in reader.accesses
        if not access.write and access.target == buffer
        if not (reader.id in alike and access.node is reader.node)
    )


def _is_exact(value: Expr) -> bool:
    inexact = isinstance(value, Op) and kind(value.type) == "f" and value.name not in EXACT
    return not inexact and (isinstance(value, Load) or all(map(_is_exact, children(value))))
