"""The loops of a scheduled program as a tree, each with its role and with what makes it so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .analysis.refused import order
from .ir.grammar import For, If, Stmt, statements
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


@dataclass(frozen=True)
class LoopNode:
    """A loop: its variable, its line in the author's file (0: none), its roles and the loops inside.

    ``roles`` has "parallel", "vector" or "tile", and "serial" where it has none of them; "reduction" beside
    them where sums are kept for each thread or lane. ``why`` says what makes a serial loop so.
    """

    variable: str
    line: int
    source: str
    roles: tuple[str, ...]
    why: str
    inside: tuple[LoopNode, ...]

    def facts(self) -> dict[str, Any]:
        """Return the node as JSON values."""
        inside = [node.facts() for node in self.inside]
        roles = list(self.roles)
        return {"loop": self.variable, "line": self.line, "roles": roles, "why": self.why, "inside": inside}


def loop_tree(program: Program) -> list[LoopNode]:
    """Return the outermost loops of a program that has its plan."""
    return list(_nodes(program, program.kernel.body))


def _nodes(program: Program, body: Sequence[Stmt]) -> Iterator[LoopNode]:
    for statement in body:
        if isinstance(statement, For):
            roles = _roles(program, statement.var)
            why = why_serial(program, statement) if "serial" in roles else ""
            inside = tuple(_nodes(program, statement.body))
            source = program.kernel.source.get(statement.line, "").strip()
            yield LoopNode(statement.var, statement.line, source, roles, why, inside)
        elif isinstance(statement, If):
            yield from _nodes(program, (*statement.body, *statement.orelse))


def _roles(program: Program, var: str) -> tuple[str, ...]:
    plan = program.plan
    table = (
        ("parallel", var in plan.threads or var in plan.rows),
        ("vector", var in plan.vector),
        ("tile", var in plan.tiles or any(tile.row == var for tile in plan.tiles.values())),
    )
    roles = [role for role, given in table if given] or ["serial"]
    kind = program.kinds.get(var)
    return (*roles, *(["reduction"] if kind is not None and kind.name == "reduction" else []))


def drawn(nodes: Sequence[LoopNode], before: str = "") -> list[str]:
    """Return the lines of a drawing of loops, the author's own lines in a column of their own.

    >>> inner = LoopNode("j", 3, "for j in range(n):", ("vector",), "", ())
    >>> outer = LoopNode("i", 2, "for i in range(m):", ("serial",), "it adds up s, in order", (inner,))
    >>> print(*drawn([outer]), sep=chr(10))
    `- i  serial: it adds up s, in order   2: for i in range(m):
       `- j  vector                        3: for j in range(n):
    """
    rows = list(_rows(nodes, before))
    width = max((len(text) for text, _ in rows), default=0)
    return [f"{text:<{width}}  {node.line:2}: {node.source}" if node.source else text for text, node in rows]


def _rows(nodes: Sequence[LoopNode], before: str) -> Iterator[tuple[str, LoopNode]]:
    for number, node in enumerate(nodes):
        last = number == len(nodes) - 1
        why = f": {node.why}" if node.why else ""
        yield f"{before}{'`- ' if last else '|- '}{node.variable}  {', '.join(node.roles)}{why}", node
        yield from _rows(node.inside, before + ("   " if last else "|  "))
