"""Hoist the check of an index that selects a row: it is checked once for the row."""

from __future__ import annotations

from dataclasses import replace

from ..analysis.bounds import Bounds
from ..analysis.strides import UNIT, depends, stride
from ..ir.grammar import Assign, For, Load, Store, children
from ..ir.uses import assigned_by, stored_by, tensors_of, unconditional_loads
from ..program import Program
from .vector_loops import vector_loops


def hoist_checks(program: Program) -> Program:
    """Return the program with the accesses whose indices are checked before their vector loop."""
    found = {loop.node.var: _rows(loop.node, program.bounds) for loop in vector_loops(program)}
    plan = replace(program.plan, checked_once={var: rows for var, rows in found.items() if rows})
    return program.with_(plan=plan)


def _rows(node: For, bounds: Bounds) -> tuple[Load | Store, ...]:
    """Return the unconditional accesses of a vector loop whose checked indices do not change in the loop."""
    names = frozenset({node.var, *assigned_by(node.body)})
    written = stored_by(node.body)
    accesses: dict[Load | Store, None] = {}
    for statement in node.body:
        if not isinstance(statement, (Assign, Store)):
            continue
        loads = [e for e in unconditional_loads(children(statement)) if e.buffer not in written]
        direct: list[Load | Store] = [*loads, *([statement] if isinstance(statement, Store) else [])]
        for row in direct:
            checked = [row.index[axis] for axis in bounds.axes(row)]
            reads = tensors_of(*checked)
            fixed = not any(depends(i, names) for i in checked) and not reads & written
            if checked and fixed and stride(row, node.var) == UNIT:
                accesses[row] = None
    return tuple(accesses)
