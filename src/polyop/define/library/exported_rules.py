"""The rules of the operators of an exported library: their outputs, and their gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...call.bound import BoundOperator
from ...call.host import host_of
from ...call.rule import Rule
from ...core.dtypes import DType, dtype
from ...core.errors import InferError
from ...core.infer import as_shape, check_size, first_device
from ...core.schema import Schema
from ...core.spec import Spec
from ...kernels.exported import ExportedKernel

_SIZES: Mapping[str, Any] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "max": max,
    "min": min,
}


class ExportedInfer:
    """The infer rule of a loop kernel: for the kernel that takes the inputs, the sizes of the manifest."""

    repeatable = True

    def __init__(self, kernel: ExportedKernel, schema: Schema, outputs: Sequence[Any]) -> None:
        """Check the outputs of each kernel. Raises ``ValueError`` for a size that cannot be computed."""
        self.kernel, self.schema = kernel, schema
        attributes = sum(1 for _ in schema.attributes())
        self.outputs: list[list[tuple[DType, list[Any]]]] = []
        for accepted, row in zip(kernel.rows, outputs, strict=True):
            ranks = [one["dimensions"] or 0 for one in accepted.values()]
            self.outputs.append(
                [
                    (dtype(one["dtype"]), [_checked(size, ranks, attributes) for size in one["shape"]])
                    for one in row
                ]
            )
        if any(len(row) != len(schema.fresh) for row in self.outputs):
            raise ValueError(f"outputs of {schema.qualified_name} do not fit its schema")

    def __call__(self, arguments: Sequence[Any]) -> tuple[Spec, ...]:
        """Return one spec per output; raises ``InferError``."""
        specs = [arguments[position] for position in self.schema.tensor_positions]
        subject = self.schema.qualified_name
        number = self.kernel.row(specs)
        if number is None:
            seen = ", ".join("no array" if spec is None else str(spec) for spec in specs)
            raise InferError(subject, f"its library {self.kernel.accepted()}", seen, where=self.kernel.file)
        values = [arguments[position] for position, _ in self.schema.attributes()]
        device = first_device(arguments)
        return tuple(
            check_size(
                Spec(
                    as_shape([_size(one, specs, values) for one in shape], subject, self.kernel.file),
                    kind,
                    device,
                ),
                subject,
                self.kernel.file,
            )
            for kind, shape in self.outputs[number]
        )


def _checked(size: Any, ranks: Sequence[int], attributes: int) -> Any:
    """Return a size of the manifest, lists as tuples; raises ``ValueError`` for another value.

    ``ranks`` are the numbers of dimensions of the tensors.
    """
    if type(size) is int:
        return size
    kind, *rest = size
    if kind in _SIZES and len(rest) == 2:
        return (kind, *(_checked(one, ranks, attributes) for one in rest))
    if all(type(one) is int and one >= 0 for one in rest):
        known = kind == "attribute" and len(rest) == 1 and rest[0] < attributes
        if known or (kind == "size" and len(rest) == 2 and rest[1] < [*ranks, 0][min(rest[0], len(ranks))]):
            return (kind, *rest)
    raise ValueError(f"a size must be a number or of a known form, not {size!r:.80}")


def _size(size: Any, specs: Sequence[Any], values: Sequence[Any]) -> Any:
    if not isinstance(size, tuple):
        return size
    kind, *rest = size
    if kind == "size":
        return specs[rest[0]].shape[rest[1]]
    if kind == "attribute":
        return values[rest[0]]
    return _SIZES[kind](*(_size(one, specs, values) for one in rest))


class ExportedGradient(Rule):
    """The gradient rule: a call of the exported operator ``<name>_backward``."""

    def __init__(self, schema: Schema, backward: BoundOperator) -> None:
        """Take the schema of the operator, and the operator that computes its gradient."""
        self.schema, self.backward = schema, backward

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        """Return a gradient for each argument, None for numbers and tensors of integers."""
        *inputs, outputs, grads = arguments
        if len(self.schema.returns) == 1:
            outputs, grads = (outputs,), (grads,)
        positions = self.schema.tensor_positions
        tensors = [*(inputs[i] for i in positions), *outputs, *grads]
        wanted = self.backward.schema.arguments[: len(tensors)]
        read = [None if one.type.is_optional else x for x, one in zip(tensors, wanted, strict=True)]
        results = self.backward(*read, *(inputs[i] for i, _ in self.schema.attributes()))
        results = results if len(positions) > 1 else (results,)
        gradients: list[Any] = [None] * len(inputs)
        for position, gradient in zip(positions, results, strict=True):
            host = host_of(inputs[position])
            if host is not None and host.spec(inputs[position]).dtype.is_floating:
                gradients[position] = gradient
        return tuple(gradients)


def is_gradient(backward: Schema, schema: Schema) -> bool:
    """Whether a schema has the arguments and results of the gradient of an operator."""
    tensors, results = len(schema.tensor_positions), len(schema.returns)
    expected = [str(argument.type) for _, argument in schema.attributes()]
    return (
        backward.tensor_positions == tuple(range(tensors + 2 * results))
        and [str(argument.type) for _, argument in backward.attributes()] == expected
        and len(backward.fresh) == len(backward.returns) == tensors
    )
