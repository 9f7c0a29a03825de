"""From an operator and the specs of its arguments to a kernel that is ready to be called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..core.arguments import attributes
from ..core.operator import Kernel, Operator
from ..core.spec import Spec
from .base import need
from .library import LibraryKernel


@dataclass(frozen=True)
class Prepared:
    """A kernel chosen for given specs, its outputs, and all attributes by name."""

    kernel: Kernel
    outputs: tuple[Spec, ...]
    attributes: dict[str, Any]
    repeatable: bool

    def launch(self, arguments: tuple[Any, ...]) -> Any | None:
        """Return the native launch, or None when the kernel is a Python function."""
        if not isinstance(self.kernel, LibraryKernel):
            return None
        return self.kernel.launch(arguments, self.outputs, self.attributes)


def normalise(operator: Operator, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments with each attribute as its schema type; raises ``ArgumentTypeError``."""
    found = attributes(operator.schema, arguments)
    schema_arguments = operator.schema.arguments
    return tuple(found.get(a.name, value) for a, value in zip(schema_arguments, arguments, strict=True))


def infer(operator: Operator, arguments: tuple[Any, ...]) -> tuple[Spec, ...]:
    """Return the output specs for normalised arguments; raises ``InferError``."""
    return operator.infer(arguments)


def prepare(operator: Operator, arguments: tuple[Any, ...]) -> Prepared:
    """Infer the outputs and choose a kernel. Each tensor among ``arguments`` is a spec.

    Raises ``ArgumentTypeError`` (an attribute), ``InferError``, ``NoKernelError``.
    """
    normal = normalise(operator, arguments)
    outputs = infer(operator, normal)
    kernel = need(operator, normal_tensors(operator, normal), outputs)
    named = attributes(operator.schema, normal)
    return Prepared(kernel, outputs, {**operator.attributes, **named}, operator.infer.repeatable)


def normal_tensors(operator: Operator, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return only the tensor arguments: specs, tuples of specs, or None."""
    return tuple(arguments[i] for i in operator.schema.tensor_positions)
