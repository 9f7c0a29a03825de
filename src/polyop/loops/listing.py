"""A program as Python text, with what each loop becomes as a comment: what ``--print-after`` shows."""

from __future__ import annotations

from collections.abc import Iterable

from .ir.printing import shown
from .program import Program


def listing(program: Program) -> str:
    """Return a program's loops as Python text, with the role of each loop as a comment."""
    roles = dict(_roles(program))
    lines = shown(program.kernel).splitlines()
    text = [_with_role(line, roles) for line in lines]
    private = [f"{name} (of {', '.join(loops)})" for name, loops in sorted(program.owners.items()) if loops]
    return "\n".join([*text, *([f"# private: {'; '.join(private)}"] if private else [])])


def _with_role(line: str, roles: dict[str, str]) -> str:
    word = line.split()
    role = roles.get(word[1]) if word[:1] == ["for"] else None
    return f"{line}  # {role}" if role else line


def _roles(program: Program) -> Iterable[tuple[str, str]]:
    plan = program.plan
    for var in sorted(plan.vector | plan.threads | plan.columns.keys() | plan.rows.keys()):
        words = ["threads"] if var in plan.threads else []
        words += [f"shared by rows of {plan.rows[var].buffer}"] if var in plan.rows else []
        words += [f"in order, threads share loop {plan.columns[var]}"] if var in plan.columns else []
        words += ["reduction"] if var in plan.private else []
        words += ["tile"] if var in plan.tiles else []
        words += ["vector"] if var in plan.vector else []
        words += ["band of " + ", ".join(m.var for m in plan.band(var))] if plan.band(var) else []
        yield var, ", ".join(words)
