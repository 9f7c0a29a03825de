"""Tensors that a vector loop reads once from end to end: memory is asked for what it comes to soon.

Processors fetch ahead by themselves, not past the end of a page and not far enough behind long arithmetic.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from .. import affine
from ..ir import Assign, For, If, Load, Store, children, statements, walk
from ..strides import UNIT, depends, stride
from .ctypes import identifier
from .expressions import Expressions, Scope
from .rows import always

AHEAD = 2048
"""Bytes: half a page, and more than is under way at once."""
MOST = 6
"""Tensors of a loop."""


def streams(node: For, around: For | None, own: AbstractSet[str]) -> list[Load]:
    """Return a load of each tensor that a vector loop walks along, the one that gets to memory first.

    Not of those in ``own``, nor of what the loop around reads again in its next iteration.
    """
    inside = list(statements(node.body))
    if any(isinstance(s, (For, If)) for s in inside):
        return []
    loads = [e for s in inside if isinstance(s, (Assign, Store)) for e in always(children(s))]
    found: dict[str, Load] = {}
    for load in loads:
        if load.buffer in own or stride(load, node.var) != UNIT or _indirect(load):
            continue
        if around is not None and not any(depends(i, frozenset({around.var})) for i in load.index):
            continue
        known = found.setdefault(load.buffer, load)
        if _offsets(load) > _offsets(known):
            found[load.buffer] = load
    return list(found.values())[:MOST]


def line(load: Load, expressions: Expressions, scope: Scope) -> str:
    """Return the statement that asks for what a load in this scope comes to soon."""
    at = expressions.address(load.buffer, tuple(expressions.scalar(i, scope) for i in load.index))
    return f"polyop_fetch(&{identifier(load.buffer)}[{at}], {AHEAD});"


def _indirect(load: Load) -> bool:
    return any(isinstance(e, Load) for i in load.index for e in walk(i))


def _offsets(load: Load) -> tuple[int, ...]:
    return tuple((affine.linear(i) or {}).get("", 0) for i in load.index)
