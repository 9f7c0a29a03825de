"""``vmap`` of a function of PyTorch: one call of ``torch.vmap``, with PyTorch's batching rules."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

from ...call import registry
from ...core.derived_names import derived_from
from ...core.schema import MISSING, Schema
from .function import TorchFunction
from .names import derived_namespace
from .vmapped import give_rules

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
        if one.registered:
            give_rules(one.registered)
        return torch.vmap(sample, in_dims, randomness="different")(*tensors)

    return dataclasses.replace(one, schema=_schema(schema), function=call)


def _schema(schema: Schema) -> Schema:
    namespace = derived_namespace(schema)
    whole = dataclasses.replace(
        schema,
        namespace=namespace,
        name=registry.unique(namespace, f"{schema.name}_batched"),
        arguments=tuple(dataclasses.replace(argument, default=MISSING) for argument in schema.arguments),
    )
    return derived_from(schema, "batched", whole)
