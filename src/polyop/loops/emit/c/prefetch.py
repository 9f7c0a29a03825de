"""Print prefetches of what a vector loop reads, and of the rows that a tile reads in a sum."""

from __future__ import annotations

from ...analysis.strides import depends
from ...ir.grammar import Load
from ..common.c_text import identifier, memory
from ..common.copies import lanes_for
from ..common.expressions import Expressions, Scope
from .indexed_rows import Around

AHEAD = 2048
"""Distance in bytes: half a page, and more than is in flight at once."""
STEPS = 8
"""Steps of a sum that a row is prefetched ahead: a hundred cycles, at a dozen each; 24 were no faster."""


def next_line(load: Load, around: Around, expressions: Expressions, scope: Scope) -> str:
    """Return the statement that prefetches the same column of the next iteration's row, or a later one's."""
    var = around.loop.var
    following = around.later if around.apart else f"({scope.names.get(var, identifier(var))} + 1)"
    at = _address(load, expressions, scope.with_names({var: following}))
    size = f"(int64_t)sizeof({memory(load.type.dtype)})"
    return f"polyop_fetch_later({identifier(load.buffer)}, ({at}) * {size});"


def line(load: Load, around: Around | None, expressions: Expressions, scope: Scope, *, later: bool) -> str:
    """Return the statement that prefetches what a load in this scope will read next.

    ``later``: into the second-level cache, because the first has more urgent data.
    """
    if (
        around is not None
        and around.apart
        and any(depends(i, frozenset({around.loop.var})) for i in load.index)
    ):
        return next_line(load, around, expressions, scope)
    place = f"&{identifier(load.buffer)}[{_address(load, expressions, scope)}]"
    return f"polyop_fetch{'_later' if later else ''}({place}, {AHEAD});"


def _address(load: Load, expressions: Expressions, scope: Scope) -> str:
    return expressions.address(load.buffer, tuple(expressions.scalar(i, scope) for i in load.index))


def line_of_row(load: Load, loop: str, expressions: Expressions, scope: Scope) -> str:
    """Return the C line that prefetches the element that a loop reads ``STEPS`` iterations later."""
    lanes = lanes_for(loop, 1, None, {})
    index = tuple(expressions.scalar(i, scope) for i in load.index)
    place = expressions.address(load.buffer, index)
    step = f"{STEPS} * ({expressions.strides(load, lanes)})"
    size = f"(int64_t)sizeof({memory(load.type.dtype)})"
    return f"polyop_fetch(&{identifier(load.buffer)}[{place}], {step} * {size});"
