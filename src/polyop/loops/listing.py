"""Print a program as Python text, with the role of each loop as a comment, as ``--print-after`` does."""

from __future__ import annotations

from collections.abc import Iterable

from .ir.printing import shown
from .program import Program


def listing(program: Program) -> str:
    """Return a program as Python text; the last line names the private buffers and their owners."""
    roles = dict(_roles(program))
    lines = shown(program.kernel).splitlines()
    text = [_with_role(line, roles) for line in lines]
    private = [f"{name} (of {', '.join(loops)})" for name, loops in sorted(program.owners.items()) if loops]
    return "\n".join([*text, *([f"# private: {'; '.join(private)}"] if private else [])])


def _with_role(line: str, roles: dict[str, str]) -> str:
    words = line.split()
    role = roles.get(words[1]) if words[:1] == ["for"] else None
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
