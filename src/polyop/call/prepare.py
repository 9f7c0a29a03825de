"""Prepare a call: infer its outputs, choose a kernel and collect the attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.arguments import attributes as typed_attributes
from ..core.errors import InferError, KernelError
from ..core.infer import reads_number
from ..core.schema import Schema
from ..core.spec import TARGETS, Spec
from ..kernels.base import LoopKernelBase
from .choose import need
from .operator import Kernel, Operator


@dataclass(frozen=True)
class Prepared:
    """A kernel chosen for given input specs, its outputs, and all attributes by name."""

    operator: Operator
    kernel: Kernel
    inputs: tuple[Any, ...]
    outputs: tuple[Spec, ...]
    attributes: dict[str, Any]
    repeatable: bool

    def deciding(self) -> tuple[int, ...]:
        """Return the positions of the numbers among the arguments whose values decide something of a call.

        The same launch serves all values of the others: of those that the kernel reads in each call, and that
        decide neither an output, nor a kernel, nor the code of one.
        """
        operator = self.operator
        passed = self.kernel.passed(self.inputs, self.attributes)
        return tuple(
            position
            for position, argument in operator.schema.attributes()
            if operator.attribute_names.get(argument.name, argument.name) not in passed
            or reads_number(operator.infer, argument.name, self.kernel)
        )

    def launch(self) -> Any | None:
        """Return the native launch, or None when the kernel is a Python function."""
        return self._launch(lambda kernel: kernel.launch(self.inputs, self.outputs, self.attributes))

    def launch_in_rows(self, rows: Sequence[Any]) -> tuple[Any | None, bool]:
        """Return the launch for tensors that lie in ``rows``, and whether later calls have the same."""
        if not isinstance(self.kernel, LoopKernelBase):
            return self.launch(), True
        from ..kernels.loop.rows import Found, launch

        found = [Found(*row) for row in rows]
        answer: tuple[Any, bool] = self._launch(
            lambda kernel: launch(kernel, self.inputs, self.outputs, self.attributes, found)
        )
        return answer

    def _launch(self, make: Callable[[Any], Any]) -> Any:
        """Return what ``make`` makes of the kernel, None if that is a Python function."""
        if not self.kernel.native:
            return None
        try:
            return make(self.kernel)
        except KernelError as problem:
            raise KernelError(self.operator.name, str(problem), where=self.operator.origin) from None
        except InferError as problem:
            if self.operator.dims is None:
                raise
            rule = f"{self.operator.dims} contradicts the kernel: {problem}"
            raise InferError(self.operator.name, rule, where=self.operator.dims.origin) from None


def normalise(operator: Operator, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments with each attribute as its schema type; raises ``ArgumentTypeError``."""
    attributes = typed_attributes(operator.schema, arguments, operator.origin)
    schema_arguments = operator.schema.arguments
    return tuple(attributes.get(a.name, value) for a, value in zip(schema_arguments, arguments, strict=True))


def prepare(operator: Operator, arguments: tuple[Any, ...], *, infer: bool = False) -> Prepared:
    """Infer the outputs and choose a kernel. Each tensor among ``arguments`` is a spec.

    If a kernel allocates its outputs itself, they are not inferred, because they may depend on data;
    ``infer=True`` infers them all the same. With ``dims=`` they are inferred, which checks the inputs.

    Raises ``ArgumentTypeError`` (an attribute), ``InferError``, ``NoKernelError``.
    """
    normal = normalise(operator, arguments)
    inputs = tuple(normal[i] for i in operator.schema.tensor_positions)
    allocates = _allocates(operator) and operator.dims is None
    outputs = () if allocates and not infer else operator.infer(normal)
    kernel = need(operator, inputs, outputs)
    attributes = AttributeValues.of(operator).of_call(operator.schema, kernel.device, normal)
    return Prepared(operator, kernel, inputs, outputs, attributes, operator.infer.repeatable)


def _allocates(operator: Operator) -> bool:
    return any(kernel.allocates for kernel in operator.kernels)


@dataclass(frozen=True)
class AttributeValues:
    """The attributes that no call passes, and the author's names of those that calls pass.

    ``fixed`` are values of the definition; ``information`` has constants for each target; ``names`` maps
    names in the schema to the author's.
    """

    fixed: Mapping[str, Any]
    names: Mapping[str, str] = field(default_factory=dict)
    information: tuple[Any, ...] = ()

    @classmethod
    def of(cls, operator: Operator) -> AttributeValues:
        """Return the values of an operator."""
        return cls(operator.attributes, operator.attribute_names, operator.information)

    def of_call(self, schema: Schema, device: str, arguments: Sequence[Any]) -> dict[str, Any]:
        """Return all attributes of a call, by the author's names.

        Later ones win: constants of the information for the device, fixed attributes, arguments. The name
        of a list of tensors has the length of the list. ``InferShape``, ``InferType``, ``Init`` and the
        kernel all get these.
        """
        values: dict[str, Any] = {
            constant.name: constant.value
            for information in self.information
            if information.target == TARGETS.get(device)
            for constant in information.constants
        }
        values.update(self.fixed)
        for argument, value in zip(schema.arguments, arguments, strict=True):
            if not argument.type.is_tensor:
                values[self.names.get(argument.name, argument.name)] = value
            elif argument.type.is_list and value is not None:
                values[argument.name] = len(value)
        return values
