"""The schedule of a compiled program, as its author could write it; applied again, it gives the same.

What no step says the compiler does again by itself: it inlines and distributes loops before the steps, and
packs, splits borders, and makes register tiles and bands after them.
"""

from __future__ import annotations

from ..analysis.loop_names import by_variable
from ..ir.grammar import For, statements
from ..ir.schedule import Schedule, Step
from ..program import Program


def chosen(program: Program) -> Schedule:
    """Return the steps that changed loops, and the roles of those loops that have names."""
    plan = program.plan
    names = by_variable(program.loops)
    steps = [Step("deterministic", ())] * program.schedule.is_deterministic + list(program.applied)
    for node in statements(program.kernel.body):
        if isinstance(node, For) and node.var in names:
            name = (names[node.var],)
            steps += [Step("parallel", name)] * (node.var in plan.threads or node.var in plan.rows)
            steps += [Step("vectorize", name)] * (node.var in plan.vector)
    return Schedule(tuple(steps))
