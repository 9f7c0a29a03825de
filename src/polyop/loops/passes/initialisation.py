"""Mark the buffers that start as zeros: an element may be read before it is written, or is never written."""

from __future__ import annotations

from ..analysis.initialisation import with_initialisation
from ..ir.note import Note
from ..program import AnyProgram


def initialisation(program: AnyProgram) -> AnyProgram:
    """Return the program with ``zeroed``, ``zeroed_if`` and ``first_read`` of its buffers set.

    A note names each result of the author's kernel that starts as zeros: a value may have been forgotten.
    """
    kernel = with_initialisation(program.kernel, program.session)
    notes = []
    for buffer in kernel.buffers.values():
        if buffer.role == "output" and buffer.zeroed and not kernel.derived:
            sizes = "" if buffer.zeroed_if is None else " for some sizes"
            why = "some elements are not written, or not before they are read"
            text = f"{buffer.name} starts as zeros{sizes}: {why}"
            notes.append(Note(buffer.line, text, "initialisation"))
    return program.with_(*notes, kernel=kernel)
