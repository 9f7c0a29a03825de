"""The tensors that a gradient reads (its residuals), found without deriving the gradient.

A framework asks in the forward call which tensors to keep. The derived gradient is the answer, but to
derive it takes proofs, and a call without a backward would pay for them. A simple kernel needs no proofs:

    y[i] = x[i] * z[i]        the partial derivatives are z[i] and x[i]: it keeps x and z
    y[i] = x[i] + 2 * z[i]    the partial derivatives are constants: it keeps nothing
    y[i] = exp(x[i])          the partial derivative is the result: it keeps y

Simple means: it has no temporaries, it reads no element of an output, and it only assigns or adds. So
each value that a partial derivative reads is an element of an input, or the result of the statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..analysis.writes import is_sole_write
from ..ir.grammar import (
    Expr,
    For,
    If,
    Kernel,
    Load,
    Op,
    Size,
    Stmt,
    Store,
    rewrite,
    statements,
    walk,
)
from ..ir.types import is_real
from .partials import number, pull


def is_simple(kernel: Kernel) -> bool:
    """Whether the kernel has no temporaries, reads no output, and only assigns and adds."""
    if any(buffer.role not in ("input", "output") for buffer in kernel.buffers.values()):
        return False
    for node in statements(kernel.body):
        if not isinstance(node, (For, If, Store)) or (isinstance(node, Store) and node.op not in ("", "+")):
            return False
        if any(isinstance(e, Load) and kernel.buffers[e.buffer].role == "output" for e in walk(node)):
            return False
    return True


def residuals(kernel: Kernel) -> frozenset[str] | None:
    """Return the tensors whose elements or sizes the gradient of a simple kernel reads; None for others.

    They are those of the whole gradient: every output has an adjoint, and every input's gradient is computed.
    Also None where a partial derivative reads a result that a later iteration may overwrite. Raises
    ``GradientError`` for a statement that has no derivative.
    """
    if not is_simple(kernel):
        return None
    if not any(is_real(kernel, n) for n, b in kernel.buffers.items() if b.role == "input"):
        return frozenset()
    values: list[Expr] = []
    for store, around in _stores(kernel.body, ()):
        if not is_real(kernel, store.buffer):
            continue
        parts = _partials(kernel, store)
        if any(_reads(part, store.value) for part in parts):
            if not is_sole_write(kernel, store, [node for node in around if isinstance(node, For)]):
                return None
            result = Load(store.buffer, store.index, store.value.type, store.line)
            parts = [_replaced(part, store.value, result) for part in parts]
        if parts or store.op != "+":  # an element that is assigned has no adjoint before
            values += [*parts, *store.index, *(head for node in around for head in _heads(node))]
    return _with_sizes(kernel, values)


def _stores(
    body: Sequence[Stmt], around: tuple[For | If, ...]
) -> Iterator[tuple[Store, tuple[For | If, ...]]]:
    """Yield each store with the loops and conditions around it, outermost first."""
    for node in body:
        match node:
            case Store():
                yield node, around
            case For():
                yield from _stores(node.body, (*around, node))
            case If():
                yield from _stores((*node.body, *node.orelse), (*around, node))


def _heads(node: For | If) -> tuple[Expr, ...]:
    return (node.lo, node.hi) if isinstance(node, For) else (node.condition,)


def _partials(kernel: Kernel, store: Store) -> list[Expr]:
    """Return the partial derivatives of a store, with the indices and conditions they come with."""
    parts = pull(store.value, number(1.0, store.value.type), lambda load: is_real(kernel, load.buffer))
    return [
        e for part in parts for e in (*part.load.index, part.value, *((part.guard,) if part.guard else ()))
    ]


def _reads(expr: Expr, value: Expr) -> bool:
    return isinstance(value, Op) and any(e == value for e in walk(expr))


def _replaced(expr: Expr, old: Expr, new: Expr) -> Any:
    return rewrite(expr, lambda e: new if e == old else e)


def _with_sizes(kernel: Kernel, values: Sequence[Expr]) -> frozenset[str]:
    """Return the tensors that ``values`` read, and those whose sizes nothing else has.

    A gradient of an input has the input's shape. The gradient of a sole output has the output's, which may be
    written in sizes of inputs.
    """
    nodes = [e for value in values for e in walk(value)]
    read = {e.buffer for e in nodes if isinstance(e, Load)}
    sizes = {e for e in nodes if isinstance(e, Size)}
    for name, buffer in kernel.buffers.items():
        if is_real(kernel, name):
            shape = (
                [Size(name, axis) for axis in range(len(buffer.shape))]
                if buffer.role == "input"
                else buffer.shape
            )
            sizes |= {e for size in shape for e in walk(size) if isinstance(e, Size)}
    outputs = [kernel.buffers[n] for n in kernel.outputs if len(kernel.outputs) == 1 or n in read]
    given = {size for buffer in outputs for size in buffer.shape if is_real(kernel, buffer.name)}
    return frozenset(read | {size.buffer for size in sizes - given})
