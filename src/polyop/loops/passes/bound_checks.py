"""Which indices are proved to be inside, which are checked once per call, and which at each access."""

from __future__ import annotations

from ..analysis.bounds import describe, find_bounds
from ..program import Note, Program


def bound_checks(program: Program) -> Program:
    """Return the program with what is not proved of its indices."""
    bounds = find_bounds(program.model, program.assumed)
    notes = (Note(line, text, "check", name) for line, text, name in describe(bounds, program.kernel))
    return program.with_(*notes, bounds=bounds)
