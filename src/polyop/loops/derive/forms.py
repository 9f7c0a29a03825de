"""Derivations by name, and the derived forms as the whole kernel has them, for tools that show one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..ir.grammar import Kernel
from ..ir.types import is_real
from ..runner import Watch
from .adjoint import adjoint
from .batch import batched
from .residuals import residuals
from .saving import saving
from .tangent import tangent

DERIVATIONS: Mapping[str, Callable[..., Any]] = {
    "adjoint": adjoint,
    "batched": batched,
    "residuals": residuals,
    "saving": saving,
    "tangent": tangent,
}


def derive(kernel: Kernel, form: str, tape: str = "auto", watch: Watch | None = None) -> Kernel | None:
    """Return the kernel of a derived form, a name of ``PIPELINES``; None if it would save nothing.

    Every output has a gradient, every real input a gradient or a tangent; the samples of a batch are along
    the first axis of every tensor. Raises ``GradientError`` for what has no derivative.
    """
    tensors = [n for n in kernel.parameters if n in kernel.buffers]
    match form:
        case "saving":
            return saving(kernel, tape, watch=watch)
        case "tangent":
            return tangent(kernel, [is_real(kernel, n) for n in tensors], watch)
        case "batched":
            return batched(kernel, [0] * len(tensors), watch)
    present = (True,) * len(kernel.outputs)
    return adjoint(kernel, present, segments=form == "checkpointed", watch=watch).kernel
