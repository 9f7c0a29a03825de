"""The text of a program for a target: C for an instruction set, CUDA or OpenCL for a device.

All printed text comes through here, and is verified: each name is declared around its line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ..analysis.bounds import describe
from ..ir.note import Note
from ..program import Program
from ..schedule.chosen import chosen
from ..targets.table import TARGETS
from .c.program import CFile, print_program
from .common.writer import recorded_printers
from .verify_names import undeclared

if TYPE_CHECKING:
    from .device.program import DeviceText

Printed = TypeVar("Printed")


def source(
    program: Program, target: str, function: str, *, precise: bool = False, checked: bool = False
) -> str:
    """Return the C file for an instruction set, or the text for a device; ``function`` is exported.

    Raises ``AssertionError`` if a line names what nothing around it declares, unless it is a fallback.
    """
    if TARGETS[target].is_device:
        return "\n".join(text for text in device_text(program, target, function, checked=checked) if text)
    return c_file(program, target, function, precise=precise, checked=checked).text()


def c_file(
    program: Program, target: str, function: str, *, precise: bool = False, checked: bool = False
) -> CFile:
    """Return the C text for an instruction set. Raises what :func:`source` raises."""

    def printed() -> CFile:
        return print_program(
            program.kernel,
            program.plan,
            program.bounds,
            program.owners,
            target=TARGETS[target],
            function=function,
            precise=precise,
            checked=checked,
            unfused=program.schedule.is_deterministic,
        )

    return _verified(program, target, printed, lambda file: [file.text()])


def device_text(program: Program, target: str, function: str, *, checked: bool = False) -> DeviceText:
    """Return the host's text and that of the device, for a device. Raises what :func:`source` raises."""
    from .device.dialect import DIALECTS
    from .device.program import print_device

    def printed() -> DeviceText:
        return print_device(
            program.kernel,
            program.plan,
            program.bounds,
            program.owners,
            program.kinds,
            DIALECTS[target],
            function=function,
            checked=checked,
        )

    return _verified(program, target, printed, list)


def _verified(
    program: Program, target: str, printed: Callable[[], Printed], texts: Callable[[Printed], list[str]]
) -> Printed:
    """Return what is printed. Raises ``AssertionError`` with the printer of each line that is wrong.

    The text of a fallback is left to the C compiler: there is nothing to fall back to.
    """
    file = printed()
    faults = [] if program.fallback else [fault for text in texts(file) for fault in undeclared(text)]
    if faults:
        with recorded_printers() as printers:
            printed()  # again: who prints a line is not recorded otherwise
        shown = "; ".join(
            f"{name} in {line[:200]!r}, printed by {printers.get(line, 'a text that is no line')}"
            for name, line in dict.fromkeys(faults)
        )
        subject = f"the text of {program.kernel.name} for {target}"
        raise AssertionError(f"{subject} names what nothing around it declares: {shown}")
    return file


def notes(program: Program, target: str) -> list[Note]:
    """Return what was decided for a target, and why, by line."""
    steps = [] if program.checked else [Note(0, f"schedule={chosen(program)}", "schedule")]
    if TARGETS[target].is_device:
        from .device.program import mapped

        mapper = mapped(program.kernel, program.plan, program.bounds, program.owners, program.kinds)
        mapper.pieces(program.kernel.body)
        return sorted([*steps, *(note for note in program.notes if note.kind != "plan"), *mapper.notes])
    once = {(row.buffer, row.line) for rows in program.plan.checked_once.values() for row in rows}
    checks = [
        Note(line, text, "check", name) for line, text, name in describe(program.bounds, program.kernel, once)
    ]
    return sorted([*steps, *(note for note in program.notes if note.kind != "check"), *checks])
