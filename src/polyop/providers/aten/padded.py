"""Operators whose shapes depend on data, with a size that the caller gives, as ``jnp.nonzero`` has it."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch

from ...call import registry
from ...call.padded import check_fill_value, padded_schema
from ...core.derived_names import derived_from
from ...core.dtypes import dtype
from ...core.errors import ArgumentTypeError, ArgumentValueError, KernelError, UnsupportedError
from ...core.infer import first_device
from ...core.schema import Schema
from ...core.spec import Spec
from ...hosts.torch import tensors
from .function import TorchFunction, to_torch
from .infer import empty_tensor
from .overloads import derived_namespace
from .torch_operator import TorchOperator


class Padded(TorchOperator):
    """An operator with ``size`` and ``fill_value`` as further arguments.

    Each dimension that depends on data has the length ``size``: what is longer is cut, and what is shorter
    is filled with ``fill_value`` in the first result (in each tensor, if that is a list), with 0 in others.
    """

    def __init__(self, first: TorchFunction, repeats: Mapping[int, int]) -> None:
        """Take the function without a size."""
        self.first = first
        function = TorchFunction(_schema(first.schema), self._run)
        doc = f"{first.schema}, with results that are padded or cut to a size."
        super().__init__(function, PaddedShapes(first), repeats, doc)

    def _run(self, *args: Any, size: int, fill_value: Any = 0, **kwargs: Any) -> Any:
        schema = self.first.schema
        rest = schema.arguments[len(args) :]
        arguments = (*args, *(kwargs.get(a.name, a.default) for a in rest))
        specs = to_torch(schema, arguments, tensors.spec)
        shapes = iter(result_shapes(self.first, _hashable(specs)))
        _check_size(schema, size)
        kind = result_shapes(self.first, _hashable(specs))[0].dtype
        check_fill_value(schema, fill_value, dtype(kind))
        result = self.first.function(*args, **kwargs)
        items = result if isinstance(result, tuple) else (result,)
        padded = []
        for number, item in enumerate(items):
            fill = 0 if number else fill_value
            if isinstance(item, (list, tuple)):
                padded.append([_resize(part, next(shapes).varying, size, fill) for part in item])
            else:
                padded.append(_resize(item, next(shapes).varying, size, fill))
        return tuple(padded) if isinstance(result, tuple) else padded[0]


class _Shape(NamedTuple):
    """The shape of a result: a number for each fixed size, None for each that depends on data."""

    sizes: tuple[int | None, ...]
    dtype: torch.dtype

    @property
    def varying(self) -> tuple[int, ...]:
        return tuple(dim for dim, size in enumerate(self.sizes) if size is None)


class PaddedShapes:
    """The infer rule: PyTorch runs the operator on sizes that it does not know, which become ``size``."""

    repeatable = True

    def __init__(self, first: TorchFunction) -> None:
        """Keep the function without a size."""
        self.first = first

    def __call__(self, arguments: Sequence[Any]) -> tuple[Spec, ...]:
        """Return one spec per output; raises ``UnsupportedError`` as :func:`result_shapes` does."""
        *inputs, size, fill = arguments
        _check_size(self.first.schema, size)
        device = first_device(inputs)
        shapes = result_shapes(self.first, _hashable(to_torch(self.first.schema, inputs, _itself)))
        check_fill_value(self.first.schema, fill, dtype(shapes[0].dtype))
        return tuple(
            Spec(tuple(size if n is None else n for n in shape.sizes), dtype(shape.dtype), device)
            for shape in shapes
        )


@functools.lru_cache(maxsize=1024)
def result_shapes(first: TorchFunction, arguments: tuple[Any, ...]) -> tuple[_Shape, ...]:
    """Return the shape of each result for arguments with specs as tensors.

    Raises ``ArgumentTypeError`` if no size depends on data, and ``UnsupportedError`` if PyTorch does not
    say which do.
    """
    from torch._subclasses import fake_tensor  # slow to import, and rarely needed
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    schema = first.schema
    with fake_tensor.FakeTensorMode(shape_env=ShapeEnv(), static_shapes=True), torch.no_grad():
        fakes = to_torch(schema, arguments, lambda spec: empty_tensor(spec, spec.device))
        try:
            shapes = tuple(_Shape(tuple(map(_known, x.shape)), x.dtype) for x in first(fakes))
        except KernelError as problem:
            cause = problem.__cause__
            kinds = fake_tensor.DynamicOutputShapeException | NotImplementedError
            # an extension's function may need data, and refuses tensors without in its own words
            if schema.namespace == "aten" and not isinstance(cause, kinds):
                raise
            raise _no_size(schema) from None
    if not any(shape.varying for shape in shapes):
        rule = "takes no size=, because the shapes of its outputs follow from those of its inputs"
        raise ArgumentTypeError(schema.qualified_name, rule)
    return shapes


def _known(size: Any) -> int | None:
    if isinstance(size, int):
        return size
    expression = size.node.expr
    return int(expression) if expression.is_number else None


def _schema(schema: Schema) -> Schema:
    namespace = derived_namespace(schema)
    padded = padded_schema(schema, namespace, registry.unique(namespace, f"{schema.name}_padded"))
    return derived_from(schema, "padded", padded)


def _no_size(schema: Schema) -> UnsupportedError:
    rule = "takes no size=, because PyTorch does not say which of its dimensions depend on data"
    shapes = f'polyop.aten("{schema.qualified_name}", infer=rule)'
    hint = f"call it eagerly, without size=, or give the shapes: {shapes}"
    return UnsupportedError(schema.qualified_name, rule, hint=hint)


def _check_size(schema: Schema, size: int) -> None:
    if size < 0:
        raise ArgumentValueError(f"{schema.qualified_name}: argument size", "must be 0 or more", size)


def _hashable(values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(tuple(value) if isinstance(value, list) else value for value in values)


def _itself(spec: Spec) -> Spec:
    return spec


def _resize(tensor: torch.Tensor, dims: Sequence[int], size: int, fill: Any) -> torch.Tensor:
    """Return a tensor cut or filled to a size along some dimensions; gradients pass through."""
    for dim in dims:
        missing = size - tensor.shape[dim]
        if missing <= 0:
            tensor = tensor.narrow(dim, 0, size)
            continue
        shape = list(tensor.shape)
        shape[dim] = missing
        filling = torch.full(shape, fill, dtype=tensor.dtype, device=tensor.device)
        tensor = torch.cat([tensor, filling], dim)
    return tensor
