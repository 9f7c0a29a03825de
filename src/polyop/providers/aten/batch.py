"""``vmap`` of a function of PyTorch: one call of ``torch.vmap``, with PyTorch's batching rules."""

# ruff: noqa: SLF001 - PyTorch has no public names for these

from __future__ import annotations

import dataclasses
from typing import Any

import torch

from ...call import registry
from ...call.batching import warn_of_loop
from ...core.schema import MISSING, Schema
from .function import TorchFunction
from .names import derived_namespace
from .registered import has_kernel

Dims = tuple[Any, ...]
"""The batch dimension of each argument, or None; a tuple of these for a list of tensors."""


def batched(one: TorchFunction, dims: Dims) -> TorchFunction:
    """Return the function of whole batches. Its outputs have the batch first."""
    schema = one.schema
    positions = schema.tensor_positions
    in_dims = tuple(list(dims[i]) if isinstance(dims[i], tuple) else dims[i] for i in positions)

    def call(*args: Any, **kwargs: Any) -> Any:
        values = [*args, *(kwargs[argument.name] for argument in schema.arguments[len(args) :])]

        def sample(*tensors: Any) -> Any:
            for position, tensor in zip(positions, tensors, strict=True):
                values[position] = tensor
            positional, keywords = schema.split(values)
            return one.function(*positional, **keywords)

        tensors = [list(v) if isinstance(v, tuple) else v for v in (values[i] for i in positions)]
        size = _samples(tensors, in_dims) if _loops(one.function) else 0
        if not size:
            return torch.vmap(sample, in_dims, randomness="different")(*tensors)
        bound = registry.named(schema.qualified_name)
        if bound is not None:  # with a rule of the caller it has no name
            warn_of_loop(bound.operator, "PyTorch")
        return _each(sample, in_dims, tensors, size)

    return dataclasses.replace(one, schema=_schema(schema), function=call)


def _loops(function: Any) -> bool:
    """Whether ``torch.vmap`` would call an operator for each sample, and say so in each call."""
    if not isinstance(function, torch._ops.OpOverload) or function.namespace == "aten":
        return False
    keys = ("FuncTorchBatched", "FuncTorchBatchedDecomposition")
    return not any(has_kernel(function.name(), key) for key in keys)


def _samples(tensors: Any, in_dims: Any) -> int:
    """Return the number of samples."""
    rows = zip(tensors, in_dims, strict=True)
    pairs = [pair for row in rows for pair in (zip(*row, strict=True) if isinstance(row[1], list) else [row])]
    return next(int(tensor.shape[dim]) for tensor, dim in pairs if dim is not None)


def _each(sample: Any, in_dims: Any, tensors: Any, size: int) -> Any:
    """Return the results of all samples, one call for each."""

    def chosen(value: Any, dim: Any, number: int) -> Any:
        if isinstance(value, list):
            return [chosen(*pair, number) for pair in zip(value, dim or [None] * len(value), strict=True)]
        return value if dim is None else value.select(dim, number)

    rows = [[chosen(*pair, number) for pair in zip(tensors, in_dims, strict=True)] for number in range(size)]
    results = [sample(*row) for row in rows]
    if isinstance(results[0], (list, tuple)):
        return tuple(torch.stack(parts) for parts in zip(*results, strict=True))
    return torch.stack(results)


def _schema(schema: Schema) -> Schema:
    namespace = derived_namespace(schema)
    return dataclasses.replace(
        schema,
        namespace=namespace,
        name=registry.unique(namespace, f"{schema.name}_batched"),
        arguments=tuple(dataclasses.replace(argument, default=MISSING) for argument in schema.arguments),
    )
