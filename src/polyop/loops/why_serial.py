"""Why a loop runs in order, in one clause: for the tree of ``polyop explain`` and for the report."""

from __future__ import annotations

from .analysis.refused import order
from .ir.grammar import For, statements
from .program import Program


def why_serial(program: Program, loop: For) -> str:
    """Return why a loop of a program that has its plan is neither on threads nor in lanes.

    The clause has no capital and no full stop, as in "line 7 writes total, and in another iteration line 8
    reads it".
    """
    clause = _reason(program, loop)
    is_asked = loop.hint == "prange" and loop.var not in (*program.plan.threads, *program.plan.columns)
    return f"{clause}; prange is a range here: threads share what is proved" if is_asked else clause


def _reason(program: Program, loop: For) -> str:
    plan, kind = program.plan, program.kinds.get(loop.var)
    name = "parallel" if kind is None else kind.name
    if loop.hint == "serial":
        return "serial() in the text asks for it"
    if loop.hint == "border":
        return "it is the border of a loop: a few iterations, whose conditions differ"
    if loop.var in plan.columns:
        own = f"each thread runs all of it, for its own part of loop {plan.columns[loop.var]}"
        return own if kind is None or kind.because is None else f"{order(kind.because)}; {own}"
    if kind is not None and name == "sequential":
        return "a value goes from one iteration to the next" if kind.because is None else order(kind.because)
    others = _others(program, loop)
    if kind is not None and name == "reduction":
        sums = ", ".join(dict.fromkeys(target for target, _ in kind.over))
        return f"it adds up {sums}, in order{f'; {others}' if others else ''}"
    return f"its iterations are independent, but {others or 'no thread and no lane gains by it'}"


def _others(program: Program, loop: For) -> str:
    """Return which loops have the threads and the lanes that this loop could have."""
    plan = program.plan
    inside = [node.var for node in statements(loop.body) if isinstance(node, For)]
    loops = [node for node in statements(program.kernel.body) if isinstance(node, For)]
    around = [node.var for node in loops if loop in statements(node.body)]
    threads = next((var for var in around if var in plan.threads), "")
    lanes = next((var for var in [*around, *inside] if var in plan.vector), "")
    taken = [f"the threads are on loop {threads}"] * bool(threads)
    return " and ".join(taken + [f"the lanes are those of loop {lanes}"] * bool(lanes))
