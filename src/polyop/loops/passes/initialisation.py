"""Mark the buffers of which an element is read before it is written: they start as zeros."""

from __future__ import annotations

from ..analysis.initialisation import with_initialisation
from ..program import AnyProgram


def initialisation(program: AnyProgram) -> AnyProgram:
    """Return the program with ``zeroed``, ``zeroed_if`` and ``first_read`` of its buffers set."""
    return program.with_(kernel=with_initialisation(program.kernel, program.session))
