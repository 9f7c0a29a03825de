"""The roles that the author's schedule gives to loops: on threads (``parallel``), lanes (``vectorize``).

    polyop.Schedule().parallel("i").vectorize("j")

A role that a loop cannot have is refused. ``plan_loops`` gives the others, and chooses the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..analysis.refused import refused
from ..ir.grammar import For, Stmt, statements
from ..ir.plan import Plan
from ..ir.schedule import Step
from ..program import Program
from .thread_partition import ThreadPartition


@dataclass(frozen=True)
class Roles:
    """The variables of loops that the schedule names, by role, with their steps."""

    parallel: dict[str, Step]
    vectorize: dict[str, Step]
    deterministic: bool = False
    """Whether each sum stays in one thread."""

    def names(self, var: str) -> bool:
        """Whether a loop has a role."""
        return var in self.parallel or var in self.vectorize

    def has_vectorize(self, body: Sequence[Stmt]) -> bool:
        """Whether a loop in a body becomes vector lanes."""
        return any(isinstance(s, For) and s.var in self.vectorize for s in statements(tuple(body)))

    def has_parallel(self, body: Sequence[Stmt], partition: ThreadPartition) -> bool:
        """Whether a loop in a body runs on threads, other than as columns of the loop around it."""
        columns = partition.columns.values()
        loops = (s.var for s in statements(tuple(body)) if isinstance(s, For))
        return any(var in self.parallel and var not in columns for var in loops)


class Chooser(Protocol):
    """What the checks ask of the planner."""

    plan: Plan
    partition: ThreadPartition
    roles: Roles

    def kind(self, loop: For) -> str:
        """Return "parallel", "reduction" or "sequential"."""

    def divisible(self, loop: For) -> bool:
        """Whether each thread can have a copy of the results of a reduction."""

    def blocked(self, loop: For) -> str | None:
        """Return why the loop's iterations cannot be lanes, or None."""


def roles_of(program: Program) -> Roles:
    """Return the roles that the author's schedule gives."""
    by_role: dict[str, dict[str, Step]] = {"parallel": {}, "vectorize": {}}
    for step in program.schedule.steps:
        if step.word in by_role and step.loops[0] in program.loops:
            by_role[step.word][program.loops[step.loops[0]]] = step
    return Roles(**by_role, deterministic=program.schedule.is_deterministic)


def check_roles(program: Program, planner: Chooser) -> None:
    """Raise ``ScheduleError`` for a role that a loop cannot have."""
    for loop in [s for s in statements(program.kernel.body) if isinstance(s, For)]:
        inside = [s.var for s in statements(loop.body) if isinstance(s, For)]
        for role in ("parallel", "vectorize"):
            steps: dict[str, Step] = getattr(planner.roles, role)
            if loop.var not in steps:
                continue
            step = steps[loop.var]
            nested = next((steps[var] for var in inside if var in steps), None)
            if nested is not None and not (role == "parallel" and loop.var in planner.partition.rows):
                rule = f"{nested} names a loop inside it, and one loop of a nest has this role"
                raise refused(program.kernel, step, rule, line=loop.line)
            _check(program, planner, loop, step)


def _check(program: Program, planner: Chooser, loop: For, step: Step) -> None:
    known = program.kinds.get(loop.var)
    because = known.because if known is not None else None
    name, kind = step.loops[0], planner.kind(loop)
    shared = because.target if because is not None else ""
    if step.word == "vectorize":
        why = planner.blocked(loop)
        if why is not None and because is not None:
            rule = f"iterations of the loop {name} depend on each other: they share {shared}"
            raise refused(program.kernel, step, rule, because)
        if why is not None:
            raise refused(program.kernel, step, f"the loop {name}: {why}", line=loop.line)
        return
    partition = planner.partition
    if kind == "parallel" or loop.var in partition.rows or loop.var in partition.columns.values():
        return
    if because is not None:
        rule = f"iterations of the loop {name} depend on each other: they share {shared}"
        raise refused(program.kernel, step, rule, because)
    if kind == "sequential":
        rule = f"a scalar that the loop {name} sets is used after it"
        raise refused(program.kernel, step, rule, line=loop.line)
    if not planner.divisible(loop):
        over = ", ".join(target for target, _ in known.over) if known is not None else ""
        rule = f"the loop {name} reduces into {over}, of which not each thread can have a copy"
        hint = "run a loop around it on threads, or make it the sum of an inner loop"
        if planner.roles.deterministic:
            rule = f"the loop {name} reduces into {over}, and deterministic() keeps each sum in one thread"
        raise refused(program.kernel, step, rule, line=loop.line, hint=hint)


def check_plan(program: Program, planner: Chooser) -> None:
    """Raise ``ScheduleError`` for a role that a loop could not get because of the roles of other loops."""
    given = {
        "parallel": planner.plan.threads | planner.plan.rows.keys(),
        "vectorize": planner.plan.vector,
    }
    lines = {s.var: s.line for s in statements(program.kernel.body) if isinstance(s, For)}
    for role, steps in (("parallel", planner.roles.parallel), ("vectorize", planner.roles.vectorize)):
        for var, step in steps.items():
            if var in given[role]:
                continue
            rule = f"the loop {step.loops[0]} is around or inside a loop whose role excludes that"
            hint = "a vector loop is the loop on threads, or inside it"
            raise refused(program.kernel, step, rule, line=lines.get(var, 0), hint=hint)
