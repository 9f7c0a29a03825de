"""The tangent of a loop kernel (forward mode), as a loop kernel."""

from __future__ import annotations

from collections.abc import Sequence

from ..analysis.session import IslSession
from ..ir.grammar import Kernel
from ..ir.types import is_real
from ..runner import Watch, run_passes
from .derivation import Derivation
from .in_place import refuse_in_place
from .pipelines import TANGENT
from .proved import proved


def tangent(kernel: Kernel, present: Sequence[bool], watch: Watch | None = None) -> Kernel:
    """Return forward mode of a typed kernel; ``present``: which of its tensors have a tangent.

    Parameters: the kernel's tensors, a tangent for each of them, its attributes; what is not read has no
    dimensions. Outputs: a tangent for each output, of its shape and dtype where it holds real numbers,
    else of one element. Raises ``GradientError`` for a kernel that writes an input, and where isl gives up.
    """
    refuse_in_place(kernel, "tangent")
    tensors = [n for n in kernel.parameters if n in kernel.buffers]
    rows = zip(tensors, present, strict=True)
    inputs = tuple(n for n, flag in rows if flag and is_real(kernel, n))
    outputs = tuple(n for n in kernel.outputs if is_real(kernel, n))
    begin = Derivation(kernel, inputs=inputs, outputs=outputs)

    def derived(session: IslSession) -> Derivation:
        return run_passes(begin.with_(session=session), TANGENT, watch, is_derivation=True)

    # without proofs its temporaries start as zeros, until the schedule proves more, or falls back and warns
    derivation, _ = proved(kernel, "tangent", derived)
    return derivation.kernel
