"""What the passes of a derivation start from. A kernel that writes an input in place has no derivative."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.errors import GradientError
from ..ir.failing import without_checks
from ..ir.grammar import Kernel
from ..ir.types import is_real
from .derivation import Derivation


def start_of_gradient(
    kernel: Kernel, present: Sequence[bool] = (), wanted: Sequence[bool] = ()
) -> Derivation:
    """Return what the passes of a gradient start from.

    ``present`` tells which outputs have a gradient to start from, ``wanted`` of which inputs one is made;
    all, where they are empty. Raises ``GradientError`` for a kernel that writes an input.
    """
    refuse_in_place(kernel, "gradient")
    flags = present or (True,) * len(kernel.outputs)
    outputs = tuple(n for n, flag in zip(kernel.outputs, flags, strict=True) if flag and is_real(kernel, n))
    unwanted = {n for n, flag in zip(kernel.tensor_parameters, wanted, strict=False) if not flag}
    inputs = tuple(
        b.name
        for b in kernel.buffers.values()
        if b.role == "input" and is_real(kernel, b.name) and b.name not in unwanted
    )
    # a call that the kernel refuses has no gradient
    return Derivation(without_checks(kernel), inputs=inputs, outputs=outputs)


def start_of_tangent(kernel: Kernel, present: Sequence[bool]) -> Derivation:
    """Return what the passes of a tangent start from; ``present``: which tensors have a tangent.

    Raises ``GradientError`` for a kernel that writes an input.
    """
    refuse_in_place(kernel, "tangent")
    rows = zip(kernel.tensor_parameters, present, strict=True)
    inputs = tuple(n for n, flag in rows if flag and is_real(kernel, n))
    outputs = tuple(n for n in kernel.outputs if is_real(kernel, n))
    return Derivation(kernel, inputs=inputs, outputs=outputs)


def refuse_in_place(kernel: Kernel, derivative: str) -> None:
    """Raise ``GradientError`` where a kernel writes an input; ``derivative``: "gradient" or "tangent"."""
    for name in kernel.outputs:
        buffer = kernel.buffers[name]
        if buffer.role == "inplace":
            rule = f"it writes its input {name} in place, and the {derivative} needs what was there before"
            hint = "return a new tensor, made with output_tensor"
            raise GradientError(kernel.name, rule, where=kernel.where(buffer.line), hint=hint)
