"""Prefetch what a vector loop reads once from end to end, and the rows that a tile reads in a sum.

Hardware prefetchers stop at the end of a page, and do not run far enough ahead of long arithmetic. In a sum
over k each ``a[k, i]`` is in another row of memory, often in another page: they do not follow such strides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from ...analysis import affine
from ...analysis.strides import STRIDED, UNIFORM, UNIT, depends, stride
from ...ir.grammar import (
    INT,
    Assign,
    Const,
    For,
    If,
    Load,
    Op,
    Stmt,
    Store,
    Var,
    children,
    statements,
    unconditional,
    walk,
)
from ...ir.rewriter import substitute
from ...ir.uses import loads_of, stored_by
from ..common.c_text import identifier, memory
from ..common.copies import lanes_for
from ..common.expressions import Expressions, Scope
from .indexed_rows import Around, always

AHEAD = 2048
"""Distance in bytes: half a page, and more than is in flight at once."""
MAX_TENSORS = 6
"""Most tensors that a loop prefetches."""
STEPS = 8
"""Steps of a sum that a row is prefetched ahead: a hundred cycles, at a dozen each; 24 were no faster."""


def streams(node: For, around: For | None, own: AbstractSet[str]) -> list[Load]:
    """Return one load of each tensor that a vector loop streams through: the one farthest ahead.

    Tensors in ``own``, and those that the loop around reads again in its next iteration, are left out.
    """
    inside = list(statements(node.body))
    if any(isinstance(s, (For, If)) for s in inside):
        return []
    loads = [e for s in inside if isinstance(s, (Assign, Store)) for e in always(children(s))]
    inner = _scalars(node)
    result: dict[str, Load] = {}
    for load in loads:
        if load.buffer in own or stride(load, node.var) != UNIT or _indirect(load) or _uses(load, inner):
            continue
        if around is not None and not any(depends(i, frozenset({around.var})) for i in load.index):
            continue
        farthest = result.setdefault(load.buffer, load)
        if _offsets(load) > _offsets(farthest):
            result[load.buffer] = load
    return list(result.values())[:MAX_TENSORS]


def reread_rows(node: For, around: For | None, own: AbstractSet[str]) -> list[Load]:
    """Return loads of rows that an earlier loop in the same body has read, and no later one reads.

    They come from a cache, so the row of the next iteration of the loop around can be prefetched meanwhile.
    """
    if (
        around is None
        or not any(s is node for s in around.body)
        or any(isinstance(s, For) for s in node.body)
    ):
        return []
    place = next(k for k, s in enumerate(around.body) if s is node)
    rows = [_rows(s) for s in around.body if isinstance(s, For)]
    number = sum(isinstance(s, For) for s in around.body[:place])
    before = [row for loop_rows in rows[:number] for row in loop_rows]
    after = [row for loop_rows in rows[number + 1 :] for row in loop_rows]
    moving = frozenset({around.var})
    return [
        load
        for row, load in rows[number].items()
        if row in before and row not in after and load.buffer not in own
        if any(depends(i, moving) for i in load.index) and stride(load, node.var) == UNIT
    ][:MAX_TENSORS]


def _rows(node: For) -> dict[object, Load]:
    """Return the loads of a loop by a key that equal loads of a loop with another variable share."""
    direct = [s for s in node.body if isinstance(s, (Assign, Store))]
    written = {s.buffer for s in direct if isinstance(s, Store)}
    loads = [e for s in direct for e in always(children(s)) if not _indirect(e) and e.buffer not in written]
    here, inner = Var("", INT), _scalars(node)
    return {
        (e.buffer, tuple(substitute(i, {node.var: here}) for i in e.index)): e
        for e in loads
        if not (_uses(e, inner) or _divides(e))
    }


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


def _indirect(load: Load) -> bool:
    return bool(loads_of(*load.index))


def _scalars(node: For) -> frozenset[str]:
    """Return the scalars that a loop's body assigns."""
    return frozenset(s.name for s in statements(node.body) if isinstance(s, Assign))


def _uses(load: Load, names: frozenset[str]) -> bool:
    return any(depends(i, names) for i in load.index)


def _divides(load: Load) -> bool:
    """Whether the address of a row that does not exist may divide by zero."""
    inside = [e for i in load.index for e in walk(i) if isinstance(e, Op)]
    return any(e.name in ("//", "%") and not isinstance(e.args[1], Const) for e in inside)


def _offsets(load: Load) -> tuple[int, ...]:
    return tuple((affine.linear(i) or {}).get("", 0) for i in load.index)


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


def line_of_row(load: Load, loop: For, expressions: Expressions, scope: Scope) -> str:
    """Return the C line that prefetches the element that the loop reads ``STEPS`` iterations later."""
    lanes = lanes_for(loop.var, 1, None, {})
    index = tuple(expressions.scalar(i, scope) for i in load.index)
    place = expressions.address(load.buffer, index)
    step = f"{STEPS} * ({expressions.strides(load, lanes)})"
    size = f"(int64_t)sizeof({memory(load.type.dtype)})"
    return f"polyop_fetch(&{identifier(load.buffer)}[{place}], {step} * {size});"
