"""The loops of a scheduled program as a tree, each with its role and with what makes it so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .ir.grammar import For, If, Stmt
from .program import Program


@dataclass(frozen=True)
class LoopNode:
    """A loop: its variable, its line in the author's file (0: none), its roles and the loops inside.

    ``roles`` has "parallel", "vector" or "tile", and "serial" where it has none of them; "reduction" beside
    them where sums are kept for each thread or lane. ``why`` says which value makes a serial loop so.
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
            why = _why(program, statement.var) if "serial" in roles else ""
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


def _why(program: Program, var: str) -> str:
    """Return why a loop has no role: the value by which its iterations depend on each other, if they do."""
    kind = program.kinds.get(var)
    if kind is None or kind.name == "parallel":
        return "no iteration depends on another"
    if kind.name == "reduction":
        return f"it sums into {', '.join(dict.fromkeys(name for name, _ in kind.over))}"
    if kind.because is None:
        return "its iterations depend on each other"
    lines = sorted({kind.because.a.line, kind.because.b.line} - {0})
    where = f", line{'s' if len(lines) > 1 else ''} {' and '.join(map(str, lines))}" if lines else ""
    return f"its iterations depend on each other by {kind.because.target}{where}"


def drawn(nodes: Sequence[LoopNode], before: str = "") -> list[str]:
    """Return the lines of a drawing of loops, the author's own lines in a column of their own.

    >>> inner = LoopNode("j", 3, "for j in range(n):", ("vector",), "", ())
    >>> outer = LoopNode("i", 2, "for i in range(m):", ("serial",), "it sums into s", (inner,))
    >>> print(*drawn([outer]), sep=chr(10))
    `- i  serial: it sums into s   2: for i in range(m):
       `- j  vector                3: for j in range(n):
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
