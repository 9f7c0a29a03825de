"""Which buffers carry derivatives: what inputs reach, and what reaches outputs, through real numbers."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.grammar import Kernel, Store, statements
from ..ir.types import is_real
from .partials import number, pull


def active(kernel: Kernel, inputs: Sequence[str], outputs: Sequence[str]) -> frozenset[str]:
    """Return the buffers that depend on ``inputs`` and that ``outputs`` depend on, both included."""
    edges = {(source, store.buffer) for store, source in _edges(kernel)}
    ahead = _closed(set(inputs), edges)
    behind = _closed(set(outputs), {(b, a) for a, b in edges})
    return frozenset(ahead & behind)


def _edges(kernel: Kernel) -> list[tuple[Store, str]]:
    found: list[tuple[Store, str]] = []
    for node in statements(kernel.body):
        if isinstance(node, Store) and is_real(kernel, node.buffer):
            parts = pull(node.value, number(1.0, node.value.type), lambda load: is_real(kernel, load.buffer))
            found += [(node, part.load.buffer) for part in parts]
    return found


def _closed(start: set[str], edges: set[tuple[str, str]]) -> set[str]:
    found = set(start)
    while True:
        more = {b for a, b in edges if a in found} - found
        if not more:
            return found
        found |= more
