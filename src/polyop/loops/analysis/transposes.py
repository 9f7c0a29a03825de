"""Transposing loops: what the stores write is adjacent along one loop, what the loads read along another.

    for i in range(n):
        for j in range(m):
            y[j, i] = x[i, j]

Here stores are adjacent along i, the lanes, and loads along j, the columns.
"""

from __future__ import annotations

from ..ir.grammar import For, Load, Store, statements, walk
from .strides import BACK, STRIDED, UNIT, depends, stride


def is_transposing(node: For, lanes: str, columns: str) -> bool:
    """Whether all stores in a loop are adjacent along ``lanes`` and far apart along ``columns``."""
    stores = [s for s in statements(node.body) if isinstance(s, Store)]
    return bool(stores) and all(stride(s, lanes) == UNIT and stride(s, columns) == STRIDED for s in stores)


def across(node: For, lanes: str, columns: str) -> list[Load]:
    """Return the loads in a loop that are adjacent along ``columns`` and far apart along ``lanes``."""
    loads = dict.fromkeys(e for s in statements(node.body) for e in walk(s) if isinstance(e, Load))
    return [
        e
        for e in loads
        if stride(e, columns) in (UNIT, BACK)
        and stride(e, lanes) == STRIDED
        and not depends(e.index[-1], frozenset({lanes}))
    ]


def transposed_loads(node: For, lanes: str) -> list[Load]:
    """Return the loads of a transposing loop inside ``lanes`` that are transposed in registers."""
    if any(isinstance(s, For) for s in statements(node.body)) or not is_transposing(node, lanes, node.var):
        return []
    return across(node, lanes, node.var)
