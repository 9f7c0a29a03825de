"""The gradient of a loop kernel, as a loop kernel."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from ...core.errors import FallbackWarning
from ..analysis.session import IslSession
from ..ir.failing import without_checks
from ..ir.grammar import Kernel
from ..ir.note import Note
from ..ir.types import is_real
from ..runner import Watch, run_passes
from .derivation import Derivation
from .gradient_kernel import Adjoint
from .in_place import refuse_in_place
from .pipelines import BACKWARD, CHECKPOINTED
from .proved import first_line, proved

PATIENCE = 100
"""How many times as much for a gradient whose residuals are known: it must not come to read others."""
UNPROVED = "its gradient tapes whatever may change: where values come from takes too long to prove"


def adjoint(
    kernel: Kernel,
    present: Sequence[bool],
    wanted: Sequence[bool] = (),
    kept: frozenset[str] = frozenset(),
    *,
    segments: bool = False,
    keeps_residuals: bool = False,
    watch: Watch | None = None,
) -> Adjoint:
    """Return the gradient of a typed kernel; ``present``: which outputs have one to start from.

    Parameters: the kernel's tensors, its outputs, one gradient for each output; what is not read has
    no dimensions. ``kept`` are inputs and outputs that are there in any case. Outputs: a gradient for
    each of the kernel's tensors, of its shape and dtype where it holds real numbers and is ``wanted`` (all
    are, where that is empty), else of one element. ``segments``: what iterations overwrite is taped for a
    segment of them at a time. ``keeps_residuals``: what it reads was said already, so isl may spend
    ``PATIENCE`` times as much on proofs. Raises ``GradientError`` with the line for what has none.
    """
    passes = CHECKPOINTED if segments else BACKWARD
    begin = start(kernel, present, wanted).with_(required=kept)
    patience = PATIENCE if keeps_residuals else 1

    def derived(session: IslSession) -> Derivation:
        return run_passes(begin.with_(session=session), passes, watch, is_derivation=True)

    derivation, sure = proved(kernel, "gradient", derived, patience)
    tapes = {n: source for n, source in derivation.tapes.items() if n in derivation.kernel.buffers}
    notes = tuple(sorted(set(derivation.notes)))
    if not sure:
        warnings.warn(FallbackWarning(f"{kernel.name}: {UNPROVED}"), stacklevel=2)
        notes = (Note(first_line(kernel), UNPROVED, "fallback"), *notes)
    return Adjoint(derivation.kernel, notes, tapes)


def start(kernel: Kernel, present: Sequence[bool] = (), wanted: Sequence[bool] = ()) -> Derivation:
    """Return what the passes of a gradient start from.

    ``present`` and ``wanted`` as :func:`adjoint` takes them; all, where they are empty. Raises
    ``GradientError`` for a kernel that writes an input.
    """
    refuse_in_place(kernel, "gradient")
    flags = present or (True,) * len(kernel.outputs)
    outputs = tuple(n for n, flag in zip(kernel.outputs, flags, strict=True) if flag and is_real(kernel, n))
    tensors = [n for n in kernel.parameters if n in kernel.buffers]
    unwanted = {n for n, flag in zip(tensors, wanted, strict=False) if not flag}
    inputs = tuple(
        b.name
        for b in kernel.buffers.values()
        if b.role == "input" and is_real(kernel, b.name) and b.name not in unwanted
    )
    # a call that the kernel refuses has no gradient
    return Derivation(without_checks(kernel), inputs=inputs, outputs=outputs)
