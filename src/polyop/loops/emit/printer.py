"""The text of a program for a target: C for an instruction set, CUDA for "cuda"."""

from __future__ import annotations

from ..analysis.bounds import describe
from ..ir.grammar import For, statements
from ..ir.note import Note
from ..program import Program
from ..schedule.chosen import chosen
from ..targets.cuda import CUDA
from ..targets.table import TARGETS
from .c.program import CFile, print_program
from .c.rows import rows_checked_once


def source(
    program: Program, target: str, function: str, *, precise: bool = False, checked: bool = False
) -> str:
    """Return the C file for an instruction set, or the CUDA file for "cuda"; ``function`` is exported."""
    if target == CUDA.name:
        from .cuda.program import print_cuda

        return print_cuda(
            program.kernel,
            program.plan,
            program.bounds,
            program.owners,
            program.kinds,
            function=function,
            checked=checked,
        )
    return c_file(program, target, function, precise=precise, checked=checked).text()


def c_file(
    program: Program, target: str, function: str, *, precise: bool = False, checked: bool = False
) -> CFile:
    """Return the C text for an instruction set."""
    return print_program(
        program.kernel,
        program.plan,
        program.bounds,
        program.owners,
        target=TARGETS[target],
        function=function,
        precise=precise,
        checked=checked,
    )


def notes(program: Program, target: str) -> list[Note]:
    """Return what was decided for a target, and why, by line."""
    steps = [] if program.checked else [Note(0, f"schedule={chosen(program)}", "schedule")]
    if target == CUDA.name:
        from .cuda.program import mapped

        mapper = mapped(program.kernel, program.plan, program.bounds, program.owners, program.kinds)
        mapper.pieces(program.kernel.body)
        return sorted([*steps, *(note for note in program.notes if note.kind != "plan"), *mapper.notes])
    loops = [
        s for s in statements(program.kernel.body) if isinstance(s, For) and s.var in program.plan.vector
    ]
    once = rows_checked_once(loops, program.bounds)
    checks = [
        Note(line, text, "check", name) for line, text, name in describe(program.bounds, program.kernel, once)
    ]
    return sorted([*steps, *(note for note in program.notes if note.kind != "check"), *checks])
