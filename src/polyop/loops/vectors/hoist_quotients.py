"""Hoist divisions that do not change in a loop: C compilers leave conditional ones inside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..ir.grammar import INT, Assign, Const, For, Op, statements, walk
from ..ir.uses import loads_of, variables_of
from ..program import Program
from .vector_loops import tiles, vector_loops

DIVISIONS = ("//", "%", "ceil_div")
"""Operators that take as long as some ten others. They have a value for every divisor, so none need wait."""


def hoist_quotients(program: Program) -> Program:
    """Return the program with the divisions that come before vector loops and before the rows of tiles."""
    loops = [*(loop.node for loop in vector_loops(program)), *(row for row, _ in tiles(program))]
    found = {loop.var: tuple(_unchanging(loop)) for loop in loops}
    plan = replace(program.plan, quotients={var: ops for var, ops in found.items() if ops})
    return program.with_(plan=plan)


def _unchanging(loop: For) -> Iterator[Op]:
    """Yield the quotients in a loop that depend on nothing that it counts or computes, inner ones first."""
    inside = list(statements((loop,)))
    names = {s.var if isinstance(s, For) else s.name for s in inside if isinstance(s, (For, Assign))}
    found = dict.fromkeys(e for s in inside for e in walk(s) if isinstance(e, Op) and e.name in DIVISIONS)
    for one in reversed(found):
        by_constant = isinstance(one.args[1], Const)  # C's compiler multiplies instead
        if one.type == INT and not by_constant and not variables_of(one) & names and not loads_of(one):
            yield one
