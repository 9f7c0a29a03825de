"""Interleave vectors: a vector that waits for the result of the one before leaves the processor idle."""

from __future__ import annotations

from dataclasses import replace

from ..analysis.cost import HEAVY, operators, slow_chain
from ..ir.grammar import For, Op, statements, walk
from ..program import Program
from .vector_loops import VectorLoop, vector_loops

UNITS = 4
"""Vectors at once where a single one would wait for the previous result."""
CHAIN = 3
"""From this many dependent slow operators on, two vectors at once are faster."""
MAX_OPERATORS = 12
"""Most operators of a body that is unrolled for several vectors; vectors share addresses and bounds."""


def interleave(program: Program) -> Program:
    """Return the program with the number of vectors that each vector loop runs at once."""
    loops = (loop for loop in vector_loops(program) if not (loop.own or loop.transposes))
    numbers = {loop.node.var: _vectors(loop) for loop in loops}
    several = {var: number for var, number in numbers.items() if number > 1}
    return program.with_(plan=replace(program.plan, interleaved=several))


def _vectors(loop: VectorLoop) -> int:
    inside = list(statements(loop.node.body))
    if slow_chain(loop.node.body) >= CHAIN:
        return 2
    if not (loop.sums or loop.inner) or is_heavy(loop.node):
        return 1
    size = sum(1 for s in inside if not isinstance(s, For) for _ in operators(s))
    return UNITS if size <= MAX_OPERATORS else 1


def is_heavy(node: For) -> bool:
    """Whether a loop computes functions that take longer than its loads."""
    ops = (e for s in statements(node.body) for e in walk(s) if isinstance(e, Op))
    return any(e.name in HEAVY and e.name != "/" for e in ops)
