"""Unroll an inner loop with few iterations, if their number is a constant, and any loop with one.

    for k in range(2):                 y[0] = x[i, 0]
        y[k] = x[i, k]          ->     y[1] = x[i, 1]

The control of such a loop would cost more than its body. Loops that the author's schedule unrolls as a whole
are written out here too, before the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..analysis.loop_names import by_variable
from ..ir.grammar import For, If, Stmt, statements, walk
from ..ir.schedule import Step
from ..program import AnyProgram
from .strip_mine import trips, unrolled

MAX_TRIPS, MAX_NODES = 4, 256
"""The most iterations that are unrolled, and the most nodes of expressions in all of them."""


def unroll(program: AnyProgram) -> AnyProgram:
    """Return the program with short inner loops written out."""
    program = _as_scheduled(program)
    named = program.named_loops()
    names = by_variable(program.loops)
    while True:
        loop = next((x for x in _short_loops(program.kernel.body, 0) if x.var not in named), None)
        if loop is None:
            return program
        count = trips(loop) or 0
        program, _, _ = unrolled(program, loop, count)
        if loop.var in names:
            program = program.with_(applied=(*program.applied, Step("unroll", (names[loop.var],), count)))


def _as_scheduled(program: AnyProgram) -> AnyProgram:
    """Return the program without the loops of which the author's schedule unrolls all iterations.

    A loop that an earlier step names is left to ``apply_schedule``.
    """
    earlier: set[str] = set()
    for step in program.schedule.steps:
        var = program.loops.get(step.loops[0], "") if step.loops else ""
        nodes = statements(program.kernel.body)
        loop = next((s for s in nodes if isinstance(s, For) and s.var == var), None)
        if step.word == "unroll" and loop and not earlier & {*step.loops} and trips(loop) == step.factor:
            program, _, _ = unrolled(program, loop, step.factor)
            program = program.with_(applied=(*program.applied, step))
        else:
            earlier |= {*step.loops}
    return program


def _short_loops(body: Sequence[Stmt], depth: int) -> Iterator[For]:
    """Yield the loops that are worth it, inner ones first."""
    for node in body:
        if isinstance(node, For):
            yield from _short_loops(node.body, depth + 1)
            if trips(node) == 1 or (depth and _is_short(node)):
                yield node
        elif isinstance(node, If):
            yield from _short_loops((*node.body, *node.orelse), depth)


def _is_short(loop: For) -> bool:
    """Whether an innermost loop has few iterations with little in them."""
    count = trips(loop)
    if count is None or not 0 < count <= MAX_TRIPS or any(isinstance(s, For) for s in statements(loop.body)):
        return False
    size = sum(1 for s in statements(loop.body) for _ in walk(s))
    return size * count <= MAX_NODES
