"""Activity analysis: which buffers carry derivatives from inputs to outputs, through real numbers."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.grammar import Kernel, Store, statements
from ..ir.types import is_real
from .partials import partial_derivatives


def active(kernel: Kernel, inputs: Sequence[str], outputs: Sequence[str]) -> frozenset[str]:
    """Return the buffers that depend on ``inputs`` and that ``outputs`` depend on, both included."""
    edges = _edges(kernel)
    varied = _reachable(set(inputs), edges)
    useful = _reachable(set(outputs), {(b, a) for a, b in edges})
    return frozenset(varied & useful)


def _edges(kernel: Kernel) -> set[tuple[str, str]]:
    """Return (a, b) for each buffer ``b`` in which a value is stored that depends on an element of ``a``."""
    edges: set[tuple[str, str]] = set()
    for node in statements(kernel.body):
        if isinstance(node, Store) and is_real(kernel, node.buffer):
            edges |= {(part.load.buffer, node.buffer) for part in partial_derivatives(kernel, node)}
    return edges


def _reachable(start: set[str], edges: set[tuple[str, str]]) -> set[str]:
    """Return ``start`` and what edges lead to from there."""
    reached = set(start)
    while True:
        more = {b for a, b in edges if a in reached} - reached
        if not more:
            return reached
        reached |= more
