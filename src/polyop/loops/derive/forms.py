"""The derived forms of a loop kernel: each runs a table of passes (pipelines.py) on a typed kernel.

In tables, caches and commands a form is called by the suffix of the operator that polyop makes for it: the
gradient of ``f`` is ``f__backward``. Inside the compiler a gradient is an adjoint.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...core.errors import FallbackWarning
from ..ir.grammar import Kernel
from ..ir.note import Note
from ..ir.types import is_real
from ..runner import Watch, run_passes
from .adjoint import Adjoint
from .batch_loop import Batch
from .derivation import Derivation
from .pipelines import ADJOINT, BATCHED, CHECKPOINTED, SAVING, TANGENT, Passes
from .proved import first_line, proved
from .residuals import residuals
from .start import start_of_gradient, start_of_tangent

PATIENCE = 100
"""Isl's quota for a gradient whose residuals a framework was told, by that of others.

Without a proof it would tape what changes, and might come to read tensors that were not kept.
"""
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
    begin = start_of_gradient(kernel, present, wanted).with_(required=kept)
    passes, patience = CHECKPOINTED if segments else ADJOINT, PATIENCE if keeps_residuals else 1
    derivation, sure = _run(kernel, "gradient", begin, passes, watch, patience)
    tapes = {n: source for n, source in derivation.tapes.items() if n in derivation.kernel.buffers}
    notes = tuple(sorted(set(derivation.notes)))
    if not sure:
        warnings.warn(FallbackWarning(f"{kernel.name}: {UNPROVED}"), stacklevel=2)
        notes = (Note(first_line(kernel), UNPROVED, "fallback"), *notes)
    return Adjoint(derivation.kernel, notes, tapes)


def saving(
    kernel: Kernel, tape: str, omitted: frozenset[str] = frozenset(), watch: Watch | None = None
) -> Kernel | None:
    """Return a typed kernel with further outputs, of what its gradient reads; None where there are none.

    ``tape``: "all" of what would be computed again, or "auto": what is of fewer dimensions than an input is.
    ``omitted`` are temporaries that are not returned in any case.
    """
    begin = start_of_gradient(kernel).with_(tape=tape, not_saved=omitted)
    derivation, _ = _run(kernel, "gradient", begin, SAVING, watch)
    return derivation.kernel if derivation.saved else None


def tangent(kernel: Kernel, present: Sequence[bool], watch: Watch | None = None) -> Kernel:
    """Return forward mode of a typed kernel; ``present``: which of its tensors have a tangent.

    Parameters: the kernel's tensors, a tangent for each of them, its attributes; what is not read has no
    dimensions. Outputs: a tangent for each output, of its shape and dtype where it holds real numbers,
    else of one element. Raises ``GradientError`` for a kernel that writes an input, and where isl gives up.
    """
    # without proofs its temporaries start as zeros, until the schedule proves more, or falls back and warns
    derivation, _ = _run(kernel, "tangent", start_of_tangent(kernel, present), TANGENT, watch)
    return derivation.kernel


def batched(kernel: Kernel, dims: Sequence[int | None], watch: Watch | None = None) -> Kernel:
    """Return a typed kernel over samples; ``dims``: the axis of each tensor that counts them, or None.

    A tensor with such an axis has one more dimension; an output has the samples first. The kernel must
    write no input, and one tensor at least must have samples.
    """
    return run_passes(Batch(kernel, axes=tuple(dims)), BATCHED, watch).kernel


def _run(
    kernel: Kernel, what: str, begin: Derivation, passes: Passes, watch: Watch | None, patience: int = 1
) -> tuple[Derivation, bool]:
    """Return what the passes make of ``begin``, and whether with all proofs; ``what`` is as in ``proved``."""
    return proved(
        kernel,
        what,
        lambda session: run_passes(begin.with_(session=session), passes, watch, is_derivation=True),
        patience,
    )


DERIVATIONS: Mapping[str, Callable[..., Any]] = {
    "backward": adjoint,
    "batched": batched,
    "residuals": residuals,
    "saving": saving,
    "tangent": tangent,
}
"""By form; and what tells which tensors a gradient reads."""


def derive(kernel: Kernel, form: str, tape: str = "auto", watch: Watch | None = None) -> Kernel | None:
    """Return the kernel of a derived form, a name of ``PIPELINES``; None if it would save nothing.

    It is that of the whole kernel, for tools that show one: every output has a gradient, every real input a
    gradient or a tangent; the samples of a batch are along the first axis of every tensor. Raises
    ``GradientError`` for what has no derivative.
    """
    tensors, present = kernel.tensor_parameters, (True,) * len(kernel.outputs)
    match form:
        case "backward" | "checkpointed":
            return adjoint(kernel, present, segments=form == "checkpointed", watch=watch).kernel
        case "saving":
            return saving(kernel, tape, watch=watch)
        case "tangent":
            return tangent(kernel, [is_real(kernel, n) for n in tensors], watch)
        case "batched":
            return batched(kernel, [0] * len(tensors), watch)
    raise KeyError(form)
