"""From an operator and the specs of its arguments to a kernel that is ready to be called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..core.arguments import attributes as typed_attributes
from ..core.errors import KernelError
from ..core.operator import Kernel, Operator
from ..core.spec import Spec
from .base import TARGETS, need


@dataclass(frozen=True)
class Prepared:
    """A kernel chosen for given input specs, its outputs, and all attributes by name."""

    operator: Operator
    kernel: Kernel
    inputs: tuple[Any, ...]
    outputs: tuple[Spec, ...]
    attributes: dict[str, Any]
    repeatable: bool

    def launch(self) -> Any | None:
        """Return the native launch, or None when the kernel is a Python function."""
        if not self.kernel.native:
            return None
        kernel: Any = self.kernel
        try:
            return kernel.launch(self.inputs, self.outputs, self.attributes)
        except KernelError as problem:
            raise KernelError(self.operator.name, str(problem), where=self.operator.origin) from None


def normalise(operator: Operator, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments with each attribute as its schema type; raises ``ArgumentTypeError``."""
    found = typed_attributes(operator.schema, arguments)
    schema_arguments = operator.schema.arguments
    return tuple(found.get(a.name, value) for a, value in zip(schema_arguments, arguments, strict=True))


def prepare(operator: Operator, arguments: tuple[Any, ...], *, infer: bool = False) -> Prepared:
    """Infer the outputs and choose a kernel. Each tensor among ``arguments`` is a spec.

    A kernel that allocates its outputs itself is not asked for them, as they may depend on data,
    but with ``infer``.

    Raises ``ArgumentTypeError`` (an attribute), ``InferError``, ``NoKernelError``.
    """
    normal = normalise(operator, arguments)
    inputs = tuple(normal[i] for i in operator.schema.tensor_positions)
    outputs = () if _allocates(operator) and not infer else operator.infer(normal)
    kernel = need(operator, inputs, outputs)
    attributes = all_attributes(operator, kernel.device, normal)
    return Prepared(operator, kernel, inputs, outputs, attributes, operator.infer.repeatable)


def _allocates(operator: Operator) -> bool:
    return any(getattr(kernel, "allocates", False) for kernel in operator.kernels)


def all_attributes(operator: Operator, device: str, arguments: Sequence[Any]) -> dict[str, Any]:
    """Return what a kernel finds by name: the author's names, whichever route a value took.

    Constants of the information for the device, then fixed attributes, then arguments; the
    length of each list of tensors under the list's name.
    """
    names = operator.attribute_names
    found: dict[str, Any] = {
        constant.name: constant.value
        for information in operator.information
        if information.target == TARGETS.get(device)
        for constant in information.constants
    }
    found.update(operator.attributes)
    for argument, value in zip(operator.schema.arguments, arguments, strict=True):
        if not argument.type.is_tensor:
            found[names.get(argument.name, argument.name)] = value
        elif argument.type.is_list and value is not None:
            found[argument.name] = len(value)
    return found
