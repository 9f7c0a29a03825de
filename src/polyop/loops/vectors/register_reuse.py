"""Register reuse: a vector loop that reads a row at several offsets loads each vector once.

A vector that begins between two loaded ones is put together from both in registers, where one instruction
does that. An unaligned load takes the time of two where vectors are as long as a cache line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...core.dtypes import dtype
from ..analysis import affine
from ..analysis.bounds import Bounds
from ..analysis.strides import UNIT, depends, stride
from ..ir.grammar import For, If, Load, children, statements
from ..ir.plan import Slide
from ..ir.types import NARROW
from ..ir.uses import assigned_by, stored_by, unconditional_loads
from ..program import Program
from .vector_loops import vector_loops

LINE = 64
"""Bytes of the vectors that are combined."""
MAX_ROWS = 8
"""Most rows of a loop; each takes two registers."""


def register_reuse(program: Program) -> Program:
    """Return the program with the rows whose vectors a vector loop loads once. It has one vector at once."""
    plan = program.plan
    found = {
        loop.node.var: _slides(loop.node, loop.width, program.bounds)
        for loop in vector_loops(program)
        if loop.node.var not in plan.interleaved and not loop.transposes
    }
    return program.with_(plan=replace(plan, slides={var: rows for var, rows in found.items() if rows}))


def _slides(node: For, width: int, bounds: Bounds) -> tuple[Slide, ...]:
    """Return the rows that a vector loop with ``width`` bytes per lane reads at several offsets.

    The loop does not write their tensors, and the loads are neither conditional nor checked.
    """
    inside = list(statements(node.body))
    if width < 4 or any(isinstance(s, For) for s in inside):
        return ()
    assigned, written = frozenset(assigned_by(node.body)), stored_by(node.body)
    exprs = [e for s in node.body for e in ((s.condition,) if isinstance(s, If) else children(s))]
    rows: dict[object, dict[Load, int]] = {}
    for load in dict.fromkeys(unconditional_loads(exprs)):
        form = None if load.buffer in written else _column(load, node.var, width, assigned, bounds)
        if form is not None:
            terms = tuple(sorted((name, times) for name, times in form.items() if name))
            rows.setdefault((load.buffer, load.index[:-1], terms), {})[load] = form.get("", 0)
    return tuple([s for row in rows.values() for s in _within(row, LINE // width)][:MAX_ROWS])


def _column(
    load: Load, var: str, width: int, assigned: frozenset[str], bounds: Bounds
) -> affine.Linear | None:
    """Return the column of a load that moves with the lanes, as a linear form."""
    name = load.type.dtype
    if not load.index or name in (*NARROW, "bool") or dtype(name).itemsize != width:
        return None
    if stride(load, var) != UNIT or any(depends(i, assigned) for i in load.index):
        return None
    if not bounds.is_plain(load):
        return None
    return affine.linear(load.index[-1])


def _within(offsets: Mapping[Load, int], max_span: int) -> list[Slide]:
    """Return slides with a span of at most ``max_span`` and at least two offsets each."""
    groups: list[dict[Load, int]] = []
    for load, offset in sorted(offsets.items(), key=lambda item: item[1]):
        if not groups or offset - min(groups[-1].values()) > max_span:
            groups.append({})
        groups[-1][load] = offset
    return [
        Slide({load: offset - min(group.values()) for load, offset in group.items()})
        for group in groups
        if len(set(group.values())) > 1
    ]
