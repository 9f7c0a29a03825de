"""Refuse to differentiate kernels that write an input in place."""

from __future__ import annotations

from ...core.errors import GradientError
from ..ir.grammar import Kernel


def refuse_in_place(kernel: Kernel, derivative: str) -> None:
    """Raise ``GradientError`` where a kernel writes an input; ``derivative``: "gradient" or "tangent"."""
    for name in kernel.outputs:
        buffer = kernel.buffers[name]
        if buffer.role == "inplace":
            rule = f"it writes its input {name} in place, and the {derivative} needs what was there before"
            hint = "return a new tensor, made with output_tensor"
            raise GradientError(kernel.name, rule, where=kernel.where(buffer.line), hint=hint)
