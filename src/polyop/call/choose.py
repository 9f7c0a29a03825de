"""Which of an operator's kernels takes a call, and why the others do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..core.errors import NoKernelError
from ..core.spec import Spec
from ..kernels.base import flatten
from .operator import Kernel, Operator


@dataclass(frozen=True)
class Refused:
    """A kernel that was not chosen, with the reason."""

    kernel: Kernel
    reason: str

    def __str__(self) -> str:
        """Return ``kernel: reason``."""
        return f"{self.kernel}: {self.reason}"


@dataclass(frozen=True)
class Choice:
    """The result of a selection: the taken kernel, if any, and each refusal."""

    taken: Kernel | None
    refused: tuple[Refused, ...]


def choose(operator: Operator, inputs: tuple[Any, ...], outputs: tuple[Spec, ...]) -> Choice:
    """Return the first kernel that takes these specs, and why the others do not.

    ``operator.target`` restricts the device; it is how a CPU kernel serves tensors elsewhere.
    """
    present = next((spec.device for spec in flatten(inputs) if spec is not None), "cpu")
    device = operator.target or present
    taken: Kernel | None = None
    refused: list[Refused] = []
    for kernel in operator.kernels:
        reason = _refuse(operator, kernel, device, inputs, outputs)
        if reason is None and taken is not None:
            reason = f"{taken} comes first"
        if reason is None:
            taken = kernel
        else:
            refused.append(Refused(kernel, reason))
    return Choice(taken, tuple(refused))


TARGETS = {"cpu": "CPU", "cuda": "GPU", "npu": "Ascend"}


def _refuse(operator: Operator, kernel: Kernel, device: str, inputs: Any, outputs: Any) -> str | None:
    if kernel.for_ascend:  # a provider's operator, which finds its device itself
        device = "npu"
    if kernel.device not in (device, "any"):
        bound = f"the operator is bound to {device}" if operator.target else f"the tensors are on {device}"
        return f"runs on {kernel.device}, and {bound}"
    registered = [i for i in operator.information if i.target == TARGETS.get(device)]
    if operator.information and not registered:
        targets = ", ".join(sorted({i.target for i in operator.information}))
        return f"the operator information is for {targets}, not {TARGETS.get(device, device)}"
    for information in registered:
        reason: str | None = information.refuse(
            [
                list(a) if isinstance(a, tuple) else a
                for a in inputs
                if a is None or isinstance(a, (Spec, tuple))
            ],
            outputs,
        )
        if reason is not None:
            return reason
    return kernel.refuse(inputs, outputs)


def need(operator: Operator, inputs: tuple[Any, ...], outputs: tuple[Spec, ...]) -> Kernel:
    """Return the chosen kernel; raises ``NoKernelError`` that lists each refusal."""
    choice = choose(operator, inputs, outputs)
    if choice.taken is not None:
        return choice.taken
    seen = ", ".join("None" if spec is None else str(spec) for spec in flatten(inputs))
    reasons = "\n  ".join(map(str, choice.refused)) or "the operator has no kernels"
    raise NoKernelError(
        operator.name, "no kernel takes these inputs", seen, where=operator.origin, hint=reasons
    )


def need_somewhere(operator: Operator, inputs: tuple[Any, ...], outputs: tuple[Spec, ...]) -> None:
    """Raise ``NoKernelError`` unless some kernel takes these specs on a device of its own.

    For programs that are traced before it is known where they run.
    """
    for kernel in operator.kernels:
        device = "cpu" if kernel.device == "any" else kernel.device
        if _refuse(operator, kernel, device, inputs, outputs) is None:
            return
    need(operator, inputs, outputs)
