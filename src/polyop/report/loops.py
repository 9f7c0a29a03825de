"""Say what each loop became, and why: threads, vector lanes, tiles, or one iteration after the other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..bench.roofline import VECTOR_BYTES
from ..loops.analysis.dependence import Conflict
from ..loops.analysis.loop_names import loop_names
from ..loops.analysis.polyhedra import Leaf
from ..loops.analysis.refused import verbs
from ..loops.emit.common.c_text import identifier
from ..loops.ir.grammar import For, Kernel, statements
from ..loops.ir.plan import Plan
from ..loops.ir.printing import statement
from ..loops.loop_tree import why_serial
from ..loops.program import Program
from .values import Access, Badge, LoopFact

SCALAR = 16
"""Bytes of a register of a target that is not in the table."""


@dataclass(frozen=True)
class Reason:
    """The kind of a loop by isl: "parallel", "reduction" into ``over``, or "sequential" by ``accesses``."""

    kind: str
    over: tuple[str, ...] = ()
    accesses: tuple[Access, ...] = ()


def reasons(program: Program) -> dict[str, Reason]:
    """Return the kind of each loop of a program, by variable, with the two accesses that make it serial."""
    return {
        var: Reason(
            kind.name,
            tuple(dict.fromkeys(name for name, _ in kind.over)),
            () if kind.because is None else accesses(program.kernel, kind.because),
        )
        for var, kind in program.kinds.items()
    }


def accesses(kernel: Kernel, conflict: Conflict) -> tuple[Access, ...]:
    """Return the two accesses of a conflict: their lines, and what each does with the target."""
    leaves: tuple[Leaf, Leaf] = (conflict.a, conflict.b)
    pairs = zip(leaves, verbs(conflict), strict=True)
    return tuple(Access(leaf.line, verb, conflict.target, _text(kernel, leaf)) for leaf, verb in pairs)


def _text(kernel: Kernel, leaf: Leaf) -> str:
    text = "" if kernel.derived else kernel.source.get(leaf.line, "").strip()
    return text or statement(leaf.node)


def loop_facts(
    kernel: Kernel, program: Program, why: Mapping[str, Reason], c: str, target: str
) -> Iterator[LoopFact]:
    """Yield each loop of a typed kernel, in the order of its text, with what it is after all passes."""
    left = {node.var: node for node in statements(program.kernel.body) if isinstance(node, For)}
    loops = [node for node in statements(kernel.body) if isinstance(node, For)]
    owned = {node.var for node in loops}
    for name, var in loop_names(kernel, {}).items():
        node = next(loop for loop in loops if loop.var == var)
        text = kernel.source.get(node.line, "").strip()
        if kernel.derived or not text.startswith("for"):
            text = statement(node)
        now = program.loops.get(name, var)
        if now != var and now in left:
            words = f"It runs as one loop with {now}, the loop of line {left[now].line}."
            yield LoopFact(name, node.line, text, (Badge("fused", f"with {now}"),), words)
            continue
        parts = [left[now]] if now in left else []
        parts += [other for other in left.values() if other.line == node.line and other.var not in owned]
        if not parts:
            words = "Nothing is left of it: its few iterations were written out, or its work was moved."
            yield LoopFact(name, node.line, text, (Badge("unrolled", "unrolled"),), words)
            continue
        yield _fact(name, node, text, program, parts, why, c, target)


def _fact(
    name: str,
    node: For,
    text: str,
    program: Program,
    parts: list[For],
    why: Mapping[str, Reason],
    c: str,
    target: str,
) -> LoopFact:
    """Return what a loop became; index set splitting may have made several of it."""
    badges: list[Badge] = []
    sentences: list[str] = []
    shared: tuple[Access, ...] = ()
    for part in parts:
        reason = why.get(part.var, Reason("parallel"))
        roles = list(_roles(part.var, reason, program.plan, c, target))
        badges += [badge for badge, _ in roles]
        sentences += [sentence for _, sentence in roles]
        if not roles:
            badges.append(Badge("serial", "serial"))
            why_so = why_serial(program, part)
            sentences += [f"{why_so[0].upper()}{why_so[1:]}.", *_said(part, program)]
            shared = shared or reason.accesses
    return LoopFact(
        name, node.line, text, tuple(dict.fromkeys(badges)), " ".join(dict.fromkeys(sentences)), shared
    )


def _roles(var: str, reason: Reason, plan: Plan, c: str, target: str) -> Iterator[tuple[Badge, str]]:
    """Yield a badge for each role that a plan gives a loop, with a sentence that says what it means."""
    conflict_free = "No two of its iterations conflict: "
    if var in plan.threads:
        over = ", ".join(dict.fromkeys(n for n, _ in plan.private.get(var, ())))
        shared = f"Threads share its iterations, each with its own {over}, which are combined at the end."
        yield Badge("parallel", "parallel"), shared if over else f"{conflict_free}threads share them."
    if var in plan.rows:
        sentence = f"Each thread runs the iterations of its own rows of {plan.rows[var].buffer}."
        yield Badge("parallel", "parallel rows"), sentence
    if var in plan.vector:
        sums = "; the sums of the lanes are combined after the loop" if reason.over else ""
        says_so = var not in plan.threads and not sums
        start = f"{conflict_free}neighbouring ones" if says_so else "Neighbouring iterations"
        yield Badge("vector", lanes_in_c(var, c, target)), f"{start} are lanes of vectors{sums}."
    if var in plan.tiles:
        row = plan.tiles[var].row
        packed = ", and an operand is packed" if plan.tiles[var].panels else ""
        sentence = f"A block of it and of loop {row} stays in registers{packed}."
        yield Badge("tile", f"tile with {row}"), sentence
    if plan.band(var):
        together = ", ".join(member.var for member in plan.band(var))
        sentence = f"Loops {together} run row by row together, so shared rows stay in a cache."
        yield Badge("band", "band"), sentence


def _said(part: For, program: Program) -> list[str]:
    """Return what the planner said of a loop that has no role, such as why it has no vectors."""
    start = f"loop {part.var}: "
    notes = [n.text for n in program.notes if n.kind == "plan" and n.line == part.line]
    texts = [text.removeprefix(start) for text in notes if text.startswith(f"{start}no ")]
    return [f"{text[0].upper()}{text[1:]}." for text in texts]


def lanes_in_c(var: str, c: str, target: str) -> str:
    """Return how many iterations of a vector loop run at once, as its C says it: "16 lanes x 4".

    >>> lanes_in_c("j", "for (; j + 4 * POLYOP_LANES(4) <= j_end; j += 4 * POLYOP_LANES(4)) {", "avx2")
    '8 lanes x 4'
    """
    steps = re.findall(rf"\b{identifier(var)} \+= (?:(\d+) \* )?POLYOP_LANES\((\d+)\)", c)
    if not steps:
        return "vector"
    units, width = max((int(units or 1), int(width)) for units, width in steps)
    lanes = VECTOR_BYTES.get(target, SCALAR) // width
    return f"{lanes} lanes x {units}" if units > 1 else f"{lanes} lanes"
