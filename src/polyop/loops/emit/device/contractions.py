"""Recognise contractions for tiles in shared memory, and the operands to stage there."""

from __future__ import annotations

from dataclasses import dataclass

from ...analysis.strides import depends
from ...ir.grammar import Assign, Expr, For, If, Load, Stmt, Var, children, statements, walk
from ...ir.uses import assigned_by, loads_of
from ..common.c_text import SIZES
from .bodies import c_type

SIDE, EACH, STEP = 64, 4, 16
"""Rows and lanes of a block's tile, rows and lanes of one thread in it, iterations of a sum in one step."""
SHARED = 32 << 10
"""Bytes of shared memory per block that every device has: CUDA promises 48 KiB, OpenCL 32."""


@dataclass(frozen=True)
class Staged:
    """A staged load: its C name, and whether it depends on the row (else on the lane)."""

    load: Load
    name: str
    by_row: bool


def stageable(lane: For, row: str, dynamic: frozenset[str]) -> bool:
    """Whether a tile's sums are contractions: no load depends on both the row and the lane.

    At least one loop reads operands of both kinds. Ranges of loops and conditions are uniform in a tile, and
    no operand has a checked index.
    """
    scalars = assigned_by(lane.body)
    contracted = 0  # innermost loops that read both kinds
    branches = [s for s in statements(lane.body) if isinstance(s, If) and holds_loop(s)]
    if not all(_uniform(s, scalars | {row, lane.var}) for s in branches):
        return False
    for node in statements(lane.body):
        if not isinstance(node, For):
            continue
        varying = frozenset(scalars | {row, lane.var})
        if depends(node.lo, varying) or depends(node.hi, varying):
            return False
        if any(isinstance(s, For) for s in node.body):
            continue
        loads = sums(node, scalars)
        if loads is None or any(e.buffer in dynamic for e in loads):
            return False
        if any(depends(i, frozenset({row})) for e in loads for i in e.index) and any(
            depends(i, frozenset({lane.var})) for e in loads for i in e.index
        ):
            contracted += 1
        if any(_both(e, row, lane.var) for e in loads) or any(_bare(s, {row, lane.var}) for s in node.body):
            return False
    return contracted > 0


def holds_loop(node: If) -> bool:
    """Whether a condition has a loop under it."""
    return any(isinstance(s, For) for s in statements((node,)))


def _uniform(node: If, names: set[str]) -> bool:
    """Whether a condition is the same for all elements of a tile."""
    reads = bool(loads_of(node.condition))
    return not reads and not depends(node.condition, frozenset(names))


def sums(loop: For, scalars: set[str]) -> list[Load] | None:
    """Return the loads of an innermost loop of sums, or None for any other loop."""
    if any(not isinstance(s, Assign) for s in loop.body):
        return None
    loads = list(dict.fromkeys(e for s in loop.body for e in walk(s) if isinstance(e, Load)))
    if any(
        depends(i, frozenset(scalars)) or isinstance(x, Load) for e in loads for i in e.index for x in walk(i)
    ):
        return None
    return loads


def _both(load: Load, row: str, lane: str) -> bool:
    return all(any(depends(i, frozenset({v})) for i in load.index) for v in (row, lane))


def _bare(node: Stmt | Expr, names: set[str]) -> bool:
    """Whether an expression reads one of the variables outside of indices."""
    if isinstance(node, Var):
        return node.name in names
    return not isinstance(node, Load) and any(_bare(e, names) for e in children(node))


def staged_loads(lane: For, row: str) -> dict[For, list[Staged]]:
    """Return for each innermost loop of a tile the loads that depend on row or lane; no two have one name."""
    result: dict[For, list[Staged]] = {}
    count = 0
    for loop in statements(lane.body):
        if not isinstance(loop, For) or any(isinstance(s, For) for s in loop.body):
            continue
        result[loop] = []
        for load in dict.fromkeys(e for s in loop.body for e in walk(s) if isinstance(e, Load)):
            by_row, by_lane = (any(depends(i, frozenset({v})) for i in load.index) for v in (row, lane.var))
            if by_row or by_lane:
                result[loop].append(Staged(load, f"part_{count}", by_row))
                count += 1
    return result


def fits(lane: For, row: str) -> bool:
    """Whether the staged operands fit into a block's shared memory."""
    operands = [operand for loads in staged_loads(lane, row).values() for operand in loads]
    return sum(STEP * (SIDE + 1) * SIZES.get(c_type(one.load.type), 4) for one in operands) <= SHARED
