"""Inline an adjoint into its only reader, where recomputing it is cheap.

    t[i] = a[i] * s
    t[i] += u                  ->     x[i] = (a[i] * s + u) * b[i]
    x[i] = t[i] * b[i]

The gradient of a softmax has such statements. Without ``t`` it needs one pass over memory less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..analysis.bounds import is_inside
from ..analysis.cost import HEAVY
from ..analysis.polyhedra import Access, Leaf
from ..analysis.session import IslSession
from ..ir.grammar import (
    INT,
    Assign,
    Expr,
    For,
    Kernel,
    Load,
    Op,
    Stmt,
    Store,
    Type,
    Var,
    statements,
    walk,
)
from ..ir.operate import operate
from ..ir.rewriter import map_body, placed, rewrite, substitute
from ..ir.types import cast
from ..ir.uses import variables_of
from ..passes.dead_statements import without_unused_buffers
from ..passes.inline import rounded
from .derivation import Derivation
from .forward_substitution import substituted_after
from .order import Order
from .scopes import scopes_of

MAX_OPERATORS, MAX_LOADS = 4, 2
"""Limits of an inlined value. Only loads that differ between iterations of the innermost loop count."""


class _Link(NamedTuple):
    """A store, its only reader, the access that reads, and the value in the reader's loops."""

    writer: Leaf
    reader: Leaf
    read: Access
    value: Expr


def inline_adjoints(derivation: Derivation) -> Derivation:
    """Return the derivation with adjoints inlined into their only reader."""
    adjoints = derivation.adjoints_left()
    return derivation.with_(kernel=inlined(derivation.kernel, derivation.session, adjoints))


def inlined(kernel: Kernel, session: IslSession, names: Sequence[str]) -> Kernel:
    """Return the kernel without the stores to ``names`` that exactly one statement reads or updates."""
    while (changed := _step(kernel, session, names)) is not None:
        kernel = changed
    return without_unused_buffers(kernel)


def _step(kernel: Kernel, session: IslSession, names: Sequence[str]) -> Kernel | None:
    """Return the kernel with one more store inlined, or None if no other can be."""
    cheap = [s for s in _cheap_stores(kernel.body) if s.buffer in names]
    if not cheap:
        return None
    local = [n for n, b in kernel.buffers.items() if b.role == "local"]
    order = Order(kernel, session, scopes_of(kernel, session, local))
    for leaf in order.model.leaves:
        link = _link(order, leaf) if any(leaf.node is s for s in cheap) else None
        if link is not None:
            changed = replace(kernel, body=_with_inlined(kernel.body, link))
            return _without_scalar(changed, link.reader.node)
    return None


def _cheap_stores(body: Sequence[Stmt]) -> Iterator[Store]:
    """Yield the stores of values that are cheap to recompute."""
    for node, place in placed(body):
        innermost = place.loops[-1].var if place.loops else ""
        if isinstance(node, Store) and not node.op and _is_cheap(node.value, innermost):
            yield node


def _link(order: Order, writer: Leaf) -> _Link | None:
    """Return a store with its only reader, if the reader can compute the value itself."""
    node = writer.node
    assert isinstance(node, Store)
    readers = order.readers(writer)
    if len(readers) != 1:
        return None
    ((reader, read),) = readers
    own = read.node is reader.node or any(e == read.node for e in walk(reader.node.value))
    plain = own and not read.guards and read.around is None and len(reader.vars) <= len(writer.vars)
    if order.kernel.buffers[node.buffer].role == "output" and not order.always_overwritten(writer, reader):
        return None  # an element of an output is needed also if no statement reads it
    if not plain or not is_inside(order.model, reader, read) or not order.has_only(reader, read, writer):
        return None
    values = _writer_instance(node, read.node, writer, reader)
    if values is None or not _is_unchanged(order, writer, reader, values):
        return None
    value = rounded(cast(node.value, Type(order.kernel.buffers[node.buffer].dtype)))
    return _Link(writer, reader, read, substitute(value, values))


def _is_cheap(value: Expr, loop: str) -> bool:
    """Whether a value is cheap to compute again in each iteration of a loop."""
    nodes = list(walk(value))
    operators = [e for e in nodes if isinstance(e, Op)]
    loads = [e for e in nodes if isinstance(e, Load) and loop in variables_of(*e.index)]
    for one in operators:  # a division by what stays the same becomes a product
        if one.name in HEAVY and (one.name != "/" or loop in variables_of(one.args[1])):
            return False
    return len(operators) <= MAX_OPERATORS and len(loads) <= MAX_LOADS


def _writer_instance(
    node: Store, load: Load | Store, writer: Leaf, reader: Leaf
) -> Mapping[str, Expr] | None:
    """Return the writer's loop variables for an instance of the reader: those of the element that is read."""
    values: dict[str, Expr] = {}
    for mine, other in zip(node.index, load.index, strict=True):
        if isinstance(mine, Var) and mine.name in writer.vars and mine.name not in values:
            values[mine.name] = other
        elif mine != other or any(isinstance(e, (Var, Load)) for e in walk(mine)):
            return None
    for var in writer.vars:
        if var not in values:
            if var not in reader.vars:
                return None
            values[var] = Var(var, INT)
    return values


def _is_unchanged(order: Order, writer: Leaf, reader: Leaf, values: Mapping[str, Expr]) -> bool:
    """Whether all operands of a value are available where it is read, and are the same; scalars are not."""
    fixed = {*writer.vars, *order.kernel.attributes}
    if any(isinstance(e, Var) and e.name not in fixed for e in walk(writer.node.value)):
        return False
    for access in writer.accesses:
        if access.write:
            continue
        own = order.scopes.get(access.target, ())
        if any(values.get(var) != Var(var, INT) or var not in reader.vars for var in own):
            return False
        if order.overwritten(writer, access) is not None:
            return False
    return True


def _with_inlined(body: Sequence[Stmt], link: _Link) -> tuple[Stmt, ...]:
    """Return a body without the writer of a link, whose value the reader computes."""

    def change(node: Store | Assign) -> Sequence[Stmt]:
        if node is link.writer.node:
            return ()
        return (_inlined_reader(node, link) if node is link.reader.node else node,)

    return map_body(body, change, drop_empty=True)


def _without_scalar(kernel: Kernel, node: Store | Assign) -> Kernel:
    """Return the kernel without a scalar that is now only another name for an input's element."""
    every = list(statements(kernel.body))
    match [s for s in every if isinstance(s, Assign) and isinstance(node, Assign) and s.name == node.name]:
        case [Assign(op="", value=Load(buffer=buffer, index=index)) as same]:
            fixed = {*kernel.attributes, *(s.var for s in every if isinstance(s, For))}
            inner = [e for i in index for e in walk(i)]
            if any(isinstance(e, Load) or (isinstance(e, Var) and e.name not in fixed) for e in inner):
                return kernel
            body = substituted_after(
                kernel.body, same, lambda e: same.value if isinstance(e, Var) and e.name == same.name else e
            )
            remains = same.name in variables_of(*statements(body))
            if kernel.buffers[buffer].role == "input" and not remains:
                return replace(kernel, body=body)
    return kernel


def _inlined_reader(node: Store | Assign, link: _Link) -> Store | Assign:
    """Return the reader with the value in place of the element."""
    updates = link.read.node is node
    value = operate(node.op, link.value, node.value) if updates else node.value
    value = rewrite(value, lambda e: link.value if e == link.read.node else e)
    reader: Store | Assign = replace(node, value=value, op="" if updates else node.op)
    return reader
