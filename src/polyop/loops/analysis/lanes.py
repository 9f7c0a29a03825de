"""What differs between the lanes of a vector loop and between the rows of a tile, and how wide a lane is."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from ...core.dtypes import dtype
from ..ir.grammar import Assign, Buffer, Expr, For, If, Load, Stmt, Store, Type, Var, children, statements
from ..ir.types import NARROW
from .strides import is_counted

ROW, LANE = "row", "lane"


def dependence(expr: Expr, dependences: Mapping[str, frozenset[str]], row: str, lane: str) -> frozenset[str]:
    """Return which of row and lane a value depends on; scalars and private tensors have ``dependences``."""
    result: frozenset[str] = frozenset()
    if isinstance(expr, Var):
        result = dependences.get(expr.name, frozenset())
        result |= ({ROW} if expr.name == row else set()) | ({LANE} if expr.name == lane else set())
    if isinstance(expr, Load):
        result = dependences.get(expr.buffer, frozenset())  # a tensor with a copy per lane
    for child in children(expr):
        result |= dependence(child, dependences, row, lane)
    return result


def differing(
    body: Sequence[Stmt], row: str, lane: str, given: Mapping[str, frozenset[str]]
) -> dict[str, frozenset[str]]:
    """Return for each scalar that a body assigns which of row and lane it depends on.

    ``given`` is what is known of other names.
    """
    result = {s.name: frozenset[str]() for s in statements(tuple(body)) if isinstance(s, Assign)} | dict(
        given
    )
    changed = True

    def visit(nodes: Sequence[Stmt], control: frozenset[str]) -> None:
        nonlocal changed
        for node in nodes:
            if isinstance(node, If):
                inner = control | dependence(node.condition, result, row, lane)
                visit(node.body, inner)
                visit(node.orelse, inner)
            elif isinstance(node, For):
                visit(node.body, control)
            elif isinstance(node, Assign):
                new = result[node.name] | control | dependence(node.value, result, row, lane)
                changed = changed or new != result[node.name]
                result[node.name] = new

    while changed:
        changed = False
        visit(body, frozenset())
    return result


def reduced_in(node: For, live: Container[str]) -> list[Assign]:
    """Return an assignment of each scalar that a loop reduces to; ``live`` are those outside of it."""
    inside = (s for s in statements(node.body) if isinstance(s, Assign) and s.name in live)
    return list({s.name: s for s in inside}.values())


def differing_in_lanes(
    node: For, live: Container[str], owners: Mapping[str, Sequence[str]]
) -> dict[str, frozenset[str]]:
    """Return what differs between the lanes of a vector loop, with sums and the tensors that a lane owns."""
    own = (name for name, loops in owners.items() if node.var in loops)
    given = {name: frozenset({LANE}) for name in (*(s.name for s in reduced_in(node, live)), *own)}
    return differing(node.body, "", node.var, given)


def lane_width(
    body: Sequence[Stmt], lanes: str, dependences: Mapping[str, frozenset[str]], buffers: Mapping[str, Buffer]
) -> int:
    """Return the bytes of the widest value that differs between lanes; addresses do not count."""
    widest = 1
    varying = frozenset(n for n, d in dependences.items() if LANE in d)

    def look(expr: Expr) -> None:
        nonlocal widest
        if LANE in dependence(expr, dependences, "", lanes):
            widest = max(widest, computed_size(expr.type))
            if isinstance(expr, Load):
                widest = max(widest, dtype(expr.type.dtype).itemsize)
        if not isinstance(expr, Load) and not is_counted(expr, lanes, varying):
            for child in children(expr):
                look(child)

    for node in statements(tuple(body)):
        if isinstance(node, (Store, Assign)):
            look(node.value)
            if isinstance(node, Store):  # a value that is one for all lanes is spread over them, too
                in_memory = dtype(buffers[node.buffer].dtype).itemsize if node.buffer in buffers else 1
                widest = max(widest, in_memory, computed_size(node.value.type))
            elif LANE in dependences.get(node.name, frozenset()):
                widest = max(widest, computed_size(node.value.type))
        elif isinstance(node, If):
            look(node.condition)
    return widest


def computed_size(kind: Type) -> int:
    """Return the bytes of a value that is computed: of a float that is narrower than float32, those of one.

    >>> computed_size(Type("bfloat16")), computed_size(Type("int8")), computed_size(Type("bool"))
    (4, 1, 1)
    """
    return 4 if kind.dtype in NARROW else dtype(kind.dtype).itemsize
