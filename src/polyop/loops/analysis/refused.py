"""Why a step of a schedule is refused, as an error with the two accesses that forbid it."""

from __future__ import annotations

from ...core.errors import ScheduleError
from ..ir.grammar import Kernel, Stmt
from ..ir.printing import statement
from ..ir.schedule import Step
from .dependence import Conflict
from .polyhedra import Leaf

WAY_OUT = "leave the step out: the compiler then chooses"


def refused(
    kernel: Kernel, step: Step, rule: str, conflict: Conflict | None = None, *, line: int = 0, hint: str = ""
) -> ScheduleError:
    """Return the error of a step that is not legal.

    ``conflict`` are the accesses that forbid it; without them, ``line`` is the place to look at.
    """
    rule = f"the step {step} of its schedule is refused: {rule}"
    if conflict is None:
        where = f"{kernel.where(line)}\n    {kernel.source.get(line, '').strip()}" if line else kernel.file
        return ScheduleError(f"loop kernel {kernel.name}", rule, where=where, hint=hint or WAY_OUT)
    rows = zip((conflict.a, conflict.b), verbs(conflict), strict=True)
    where = "\n  and ".join(_access(kernel, leaf, f"{verb} {conflict.target}") for leaf, verb in rows)
    return ScheduleError(f"loop kernel {kernel.name}", rule, where=where, hint=hint or WAY_OUT)


def verbs(conflict: Conflict) -> tuple[str, str]:
    """Return what the two statements of a conflict do with its target: one of them writes it."""
    kinds = [
        {access.write for access in leaf.accesses if access.target == conflict.target}
        for leaf in (conflict.a, conflict.b)
    ]
    if False in kinds[1]:
        return ("writes", "reads") if True in kinds[0] else ("reads", "writes")
    return ("reads" if False in kinds[0] else "writes"), "writes"


def order(conflict: Conflict) -> str:
    """Return in words what makes a loop keep its order: what two of its iterations do with one value."""
    (first, second), (a, b) = verbs(conflict), (conflict.a.line, conflict.b.line)
    if a != b:
        return f"line {a} {first} {conflict.target}, and in another iteration line {b} {second} it"
    if first != second:
        return f"line {a} both {first} and {second} {conflict.target}"
    return f"line {a} {first} {conflict.target} again and again"


def _access(kernel: Kernel, leaf: Leaf, what: str) -> str:
    node: Stmt = leaf.node
    text = statement(node) if kernel.derived else kernel.source.get(leaf.line, "").strip()
    return f"{kernel.where(leaf.line)}, which {what}\n    {text or statement(node)}"
