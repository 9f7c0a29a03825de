"""A loop kernel over a batch of samples, as a loop kernel."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.grammar import Kernel
from ..runner import Watch, run_passes
from .batch_loop import Batch
from .pipelines import BATCHED


def batched(kernel: Kernel, dims: Sequence[int | None], watch: Watch | None = None) -> Kernel:
    """Return a typed kernel over samples; ``dims``: the axis of each tensor that counts them, or None.

    A tensor with such an axis has one more dimension; an output has the samples first. The kernel must
    write no input, and one tensor at least must have samples.
    """
    return run_passes(Batch(kernel, axes=tuple(dims)), BATCHED, watch).kernel
