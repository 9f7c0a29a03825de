"""Choose the kernel of an operator for a call, with the reason why each other kernel is not chosen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..core.errors import NoKernelError
from ..core.spec import DEVICES, TARGETS, Spec
from ..kernels.base import flatten
from .operator import Kernel, Operator


@dataclass(frozen=True)
class Refusal:
    """A kernel that was not chosen, with the reason."""

    kernel: Kernel
    reason: str

    def __str__(self) -> str:
        """Return ``kernel: reason``."""
        return f"{self.kernel}: {self.reason}"


@dataclass(frozen=True)
class Choice:
    """The chosen kernel, if any, and each refusal."""

    kernel: Kernel | None
    refusals: tuple[Refusal, ...]


def choose(operator: Operator, inputs: tuple[Any, ...], outputs: tuple[Spec, ...]) -> Choice:
    """Return the first kernel that takes these specs, and the reasons against the others.

    The device is ``operator.target``, else that of the first tensor. With a target of ``"cpu"`` a CPU
    kernel serves tensors of any device: hosts copy them there and back.
    """
    device = operator.target or _device(inputs)
    chosen: Kernel | None = None
    refusals: list[Refusal] = []
    for kernel in operator.kernels_for(device):
        reason = _refuse(operator, kernel, device, inputs, outputs)
        if reason is None and chosen is not None:
            reason = f"{chosen} comes first"
        if reason is None:
            chosen = kernel
        else:
            refusals.append(Refusal(kernel, reason))
    return Choice(chosen, tuple(refusals))


def _way(operator: Operator, device: str) -> str:
    """Return how the tensor ``{}`` gets to a device that a kernel runs on; empty if one runs where it is."""
    there = {kernel.device for kernel in operator.kernels_for(device)}
    if there & {device, "any"} or device not in DEVICES:
        return ""
    if "cpu" in there:
        way = DEVICES[device].to_cpu
    else:
        way = next((DEVICES[name].from_cpu for name in sorted(there & set(DEVICES))), "")
    return f"copy the tensors first, as in {way}" if way else ""


def _device(inputs: tuple[Any, ...]) -> str:
    return next((spec.device for spec in flatten(inputs) if spec is not None), "cpu")


def _refuse(operator: Operator, kernel: Kernel, device: str, inputs: Any, outputs: Any) -> str | None:
    """Return why a kernel cannot take a call on a device: device, operator information, its own reason."""
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
    if choice.kernel is not None:
        return choice.kernel
    seen = ", ".join("None" if spec is None else str(spec) for spec in flatten(inputs))
    reasons = list(map(str, choice.refusals)) or ["the operator has no kernels"]
    hint = "\n  ".join([*reasons, *_conversion(operator, inputs)])
    raise NoKernelError(operator.name, "no kernel takes these inputs", seen, where=operator.origin, hint=hint)


def _conversion(operator: Operator, inputs: tuple[Any, ...]) -> Iterator[str]:
    """Yield what to do about another device, and about the first argument of a dtype that no kernel takes."""
    if operator.target is None:
        way = _way(operator, _device(inputs))
        yield from [way.format(_tensor_names(operator)[0])] if way else []
    declared = [row for kernel in operator.kernels for row in kernel.declared_dtypes]
    for name, value in zip(_tensor_names(operator), inputs, strict=True):
        wrong = next((x for x in flatten([value]) if x is not None and x.dtype not in declared), None)
        if declared and wrong is not None:
            to = next((row for row in declared if row.kind == wrong.dtype.kind), declared[0])
            word = "bool_" if to.name == "bool" else to.name
            yield f"convert it first: {name}.astype(np.{word}), a tensor of PyTorch {name}.to(torch.{to})"
            yield f'or add "{wrong.dtype}" to dtypes= of the operator, if the kernel is written for it'
            return


def _tensor_names(operator: Operator) -> list[str]:
    return [argument.name for argument in operator.schema.tensor_arguments]


def takes(operator: Operator, kernel: Kernel, inputs: tuple[Any, ...], outputs: tuple[Spec, ...]) -> bool:
    """Whether a kernel takes these specs on the device that it runs on."""
    device = "cpu" if kernel.device == "any" else kernel.device
    return _refuse(operator, kernel, device, inputs, outputs) is None


def need_somewhere(operator: Operator, inputs: tuple[Any, ...], outputs: tuple[Spec, ...]) -> None:
    """Raise ``NoKernelError`` unless some kernel takes these specs on the device that it runs on.

    For programs that are traced before their device is known.
    """
    if not any(takes(operator, kernel, inputs, outputs) for kernel in operator.kernels):
        need(operator, inputs, outputs)
