"""Activity analysis: which buffers carry derivatives from inputs to outputs, through real numbers."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.derivatives import number
from ..ir.grammar import Kernel, Store, statements
from ..ir.types import is_real
from .partials import adjoint_parts


def active(kernel: Kernel, inputs: Sequence[str], outputs: Sequence[str]) -> frozenset[str]:
    """Return the buffers that depend on ``inputs`` and that ``outputs`` depend on, both included."""
    edges = {(source, store.buffer) for store, source in _edges(kernel)}
    varied = _reachable(set(inputs), edges)
    useful = _reachable(set(outputs), {(b, a) for a, b in edges})
    return frozenset(varied & useful)


def _edges(kernel: Kernel) -> list[tuple[Store, str]]:
    """Return each store with a buffer that its value depends on, once for each such buffer."""
    edges: list[tuple[Store, str]] = []
    for node in statements(kernel.body):
        if isinstance(node, Store) and is_real(kernel, node.buffer):
            parts = adjoint_parts(
                node.value, number(1.0, node.value.type), lambda load: is_real(kernel, load.buffer)
            )
            edges += [(node, part.load.buffer) for part in parts]
    return edges


def _reachable(start: set[str], edges: set[tuple[str, str]]) -> set[str]:
    reached = set(start)
    while True:
        more = {b for a, b in edges if a in reached} - reached
        if not more:
            return reached
        reached |= more
