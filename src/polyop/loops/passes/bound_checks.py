"""Decide where each index is checked: never, once per call, or at each access.

An index that isl proves to be inside needs no check. One that depends on the sizes alone is a condition on
the call. Any other, such as ``x[index[i]]``, is checked when the element is accessed.
"""

from __future__ import annotations

from ..analysis.bounds import describe, find_bounds
from ..ir.note import Note
from ..program import Program


def bound_checks(program: Program) -> Program:
    """Return the program with what is not proved of its indices."""
    bounds = find_bounds(program.model, program.assumed)
    notes = (Note(line, text, "check", name) for line, text, name in describe(bounds, program.kernel))
    return program.with_(*notes, bounds=bounds)
