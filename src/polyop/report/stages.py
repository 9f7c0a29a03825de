"""The stages of a loop kernel in the compiler: its loops after each pass, what they became, its C."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..loops.analysis.cost import HEAVY
from ..loops.emit.printer import notes, source
from ..loops.ir.grammar import Kernel, Op, statements, walk
from ..loops.ir.note import Note
from ..loops.library.library import schedule_or_original
from ..loops.library.options import Options, exported
from ..loops.listing import listing
from ..loops.program import Program
from ..loops.runner import Pass
from ..loops.schedule.chosen import chosen
from . import machine_code
from .iteration_space import spaces
from .loops import Reason, loop_facts, reasons
from .origins import lines_of_c, lines_of_listing, loop_lines
from .values import Form, Line, LoopFact, PassStep, SourceLine

FLOATS = ("float16", "bfloat16", "float32", "float64")
MULTIPLY_ADD = 0.5
"""What the compiler's model says that an addition or a multiplication costs."""
BEFORE_CHANGES = "array_privatisation"
"""The first pass after which iteration spaces are drawn: temporaries are private, loops are the author's."""


@dataclass
class _Watch:
    """Collects what each pass did: texts, because isl's values are gone after the last pass."""

    text: str
    origins: list[int]
    steps: list[PassStep] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    plain: Program | None = None
    """The program whose loops are the author's, with private temporaries: its iteration spaces are drawn."""
    why: Mapping[str, Reason] = field(default_factory=dict)
    said: int = 0
    count: int = 0

    def __call__(self, one: Pass[Any], program: Program, seconds: float) -> None:
        del seconds
        self.count += 1
        text, origins = listing(program), lines_of_listing(program)
        new = [note for note in program.notes[self.said :] if note.line]
        self.said = len(program.notes)
        if text == self.text:
            self.unchanged.append(one.name)
        else:
            lines = tuple(changed(self.text, self.origins, text, origins))
            self.steps.append(PassStep(self.count, one.name, one.why, lines, tuple(map(_said, new))))
        self.text, self.origins = text, origins
        if one.name == BEFORE_CHANGES and self.plain is None:
            self.plain = program
        if one.name == "plan_loops":
            self.why = reasons(program)


def _said(note: Note) -> str:
    return f"line {note.line}: {note.text}"


def changed(old: str, old_origins: Sequence[int], new: str, origins: Sequence[int]) -> Iterator[Line]:
    r"""Yield the lines of a listing and, with "-", those of the listing before it that are gone.

    >>> [(line.text, line.mark) for line in changed("a\nb", [1, 2], "a\nc", [1, 3])]
    [('a', ''), ('b', '-'), ('c', '+')]
    """
    a, b = old.splitlines(), new.splitlines()
    for what, i, i_end, j, j_end in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if what != "equal":  # a line that only got a role stays one line
            now = {line.partition("  # ")[0] for line in b[j:j_end]}
            yield from (Line(a[k], old_origins[k], "-") for k in range(i, i_end) if a[k] not in now)
        yield from (Line(b[k], origins[k], "" if what == "equal" else "+") for k in range(j, j_end))


def form_of(
    title: str,
    kernel: Kernel,
    options: Options,
    sizes: Mapping[str, int],
    more_notes: Sequence[Note] = (),
) -> Form:
    """Return a typed kernel after all passes, with its C and its machine code.

    ``sizes``: the values of the attributes, for the small case. ``more_notes``: of the kernel's derivation.
    Raises ``ScheduleError`` for a step of the author's schedule that is not legal.
    """
    first = Program(kernel)
    watch = _Watch(listing(first), lines_of_listing(first))
    start = tuple(Line(*pair) for pair in zip(watch.text.splitlines(), watch.origins, strict=True))
    program = _program(kernel, options, watch)
    text = source(program, options.isa, exported(kernel), precise=options.precise, checked=program.checked)
    origins = lines_of_c(text, loop_lines(kernel) | loop_lines(program.kernel))
    facts = tuple(loop_facts(kernel, program, watch.why, text, options.isa))
    told = sorted({*notes(program, options.isa), *more_notes})
    return Form(
        title=title,
        source=tuple(source_lines(kernel, facts, told)),
        loops=facts,
        start=start,
        passes=tuple(watch.steps),
        unchanged=tuple(dict.fromkeys(watch.unchanged)),
        c=tuple(Line(*pair) for pair in zip(text.splitlines(), origins, strict=True)),
        machine=machine_code.code(text, options, origins),
        spaces=() if watch.plain is None else spaces(watch.plain, sizes),
        schedule="" if program.checked else str(chosen(program)),
        target=options.isa,
        fallback=program.fallback,
        costly=tuple(costly(kernel)),
    )


def costly(kernel: Kernel) -> Iterator[str]:
    """Yield the functions that a kernel computes, with their lines, and how many multiply-adds each costs."""
    lines: dict[str, list[int]] = {}
    for node in statements(kernel.body):
        for one in walk(node):
            if isinstance(one, Op) and one.name in HEAVY and one.type.dtype in FLOATS:
                lines.setdefault(one.name, []).append(node.line)
    for name, numbers in sorted(lines.items(), key=lambda row: -HEAVY[row[0]]):
        places = ", ".join(str(n) for n in sorted(set(numbers)) if n)
        yield f"{name} (line {places}) as much as {HEAVY[name] / MULTIPLY_ADD:.0f} of them"


def _program(kernel: Kernel, options: Options, watch: _Watch) -> Program:
    """Return the program that a call runs; in the author's order there are no steps of passes to show."""
    program = schedule_or_original(kernel, options, watch)
    if program.checked:
        watch.steps.clear()
    return program


def source_lines(kernel: Kernel, facts: Sequence[LoopFact], told: Sequence[Note]) -> Iterator[SourceLine]:
    """Yield the author's lines, without what is behind its end and the indentation that all share."""
    numbers = sorted(kernel.source)
    while numbers and (kernel.source[numbers[-1]].startswith("#") or not kernel.source[numbers[-1]].strip()):
        numbers.pop()
    texts = inspect.cleandoc("\n" + "\n".join(kernel.source[n] for n in numbers)).splitlines()
    texts += [""] * (len(numbers) - len(texts))
    for place, (number, text) in enumerate(zip(numbers, texts, strict=False)):
        badges = [badge for fact in facts if fact.line == number for badge in fact.badges]
        notes_here = [note.text for note in told if note.line == number]
        yield SourceLine(
            number,
            text,
            tuple(dict.fromkeys(badges)),
            tuple(dict.fromkeys(notes_here)),
            gap=place > 0 and numbers[place - 1] != number - 1,
        )
