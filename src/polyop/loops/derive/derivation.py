"""The value that the passes of a derivation take and return: a program, and facts of the derivation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..ir.grammar import INT, Const, Expr
from ..program import Program
from .recording import Recording

SCALAR_SHAPE, SCALAR_INDEX = (Const(1, INT),), (Const(0, INT),)
"""The shape of a scalar in memory, a buffer of one element, and the index of that."""


@dataclass(frozen=True)
class Derivation(Program):
    """A kernel on its way to its gradient, its tangent or its saving form.

    ``owners`` are the scopes of temporaries: the loops whose iterations each have them for themselves.
    """

    inputs: tuple[str, ...] = ()
    """The inputs with respect to which the kernel is differentiated."""
    outputs: tuple[str, ...] = ()
    """The outputs that are differentiated."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """The author's buffer that each buffer of a checkpointed segment stands for."""
    recording: Recording | None = None
    """Which values of this kernel its gradient reads, and where they come from."""

    adjoints: tuple[str, ...] = ()
    """After ``reverse``: the buffers in which gradients are accumulated."""
    copies: Mapping[str, str] = field(default_factory=dict)
    """After ``reverse``: by adjoint of an output, the parameter that it is a copy of at first."""
    shapes: Mapping[str, tuple[Expr, ...]] = field(default_factory=dict)
    """By parameter, its shape in sizes of other parameters: either of them may then be absent."""
    tapes: Mapping[str, str] = field(default_factory=dict)
    """After ``reverse``: by tape, the author's buffer whose values it keeps."""
    required: frozenset[str] = frozenset()
    """The parameters that callers have in any case."""

    tape: str = "auto"
    """For the saving form: which temporaries it returns, "all" or "auto"."""
    not_saved: frozenset[str] = frozenset()
    """For the saving form: the temporaries that it must not return."""
    winners: frozenset[str] = frozenset()
    """For the saving form: the temporaries that say which elements maxima took. It returns them if it can."""
    saved: tuple[str, ...] = ()
    """After ``return_temporaries``: the temporaries that it returns."""

    def adjoints_left(self, *, scalars: bool = False) -> list[str]:
        """Return the adjoints that the kernel still has; ``scalars``: only those of one element."""
        buffers = self.kernel.buffers
        return [
            n for n in self.adjoints if n in buffers and (not scalars or buffers[n].shape == SCALAR_SHAPE)
        ]
