"""Prefetch the rows that a tile reads in a sum, some steps ahead.

In a sum over k each ``a[k, i]`` is in another row of memory, often in another page. Hardware prefetchers do
not follow such strides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...analysis.strides import STRIDED, UNIFORM, UNIT, stride
from ...ir.grammar import For, Load, Stmt, children, statements, unconditional
from ...ir.uses import stored_by
from ..common.copies import lanes_for
from ..common.ctypes import identifier, memory
from ..common.expressions import Expressions, Scope

STEPS = 8
"""Steps ahead: a hundred cycles, at a dozen per step; three times as many were no faster."""


def across(lane: For, row: str) -> Iterator[tuple[For, Load]]:
    """Yield the innermost loops of a tile's sums, each with a load of neighbouring elements for the rows."""
    written = stored_by(lane.body)
    for loop in statements(lane.body):
        if isinstance(loop, For) and not any(isinstance(s, For) for s in loop.body):
            for load in dict.fromkeys(_loads(loop.body)):
                rows, lanes, steps = (stride(load, v) for v in (row, lane.var, loop.var))
                if (rows, lanes, steps) == (UNIT, UNIFORM, STRIDED) and load.buffer not in written:
                    yield loop, load


def _loads(body: Sequence[Stmt]) -> Iterator[Load]:
    for node in body:
        for child in children(node):
            yield from (e for e in unconditional(child) if isinstance(e, Load))


def line(load: Load, loop: For, expressions: Expressions, scope: Scope) -> str:
    """Return the C line that prefetches the element that the loop reads ``STEPS`` iterations later."""
    lanes = lanes_for(loop.var, 1, None, {})
    index = tuple(expressions.scalar(i, scope) for i in load.index)
    place = expressions.address(load.buffer, index)
    step = f"{STEPS} * ({expressions.strides(load, lanes)})"
    size = f"(int64_t)sizeof({memory(load.type.dtype)})"
    return f"polyop_fetch(&{identifier(load.buffer)}[{place}], {step} * {size});"
