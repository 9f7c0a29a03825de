"""Calls with nested tensors: of jagged layout they run on the values, all others are refused.

A jagged tensor keeps its rows of different lengths one after the other:

    shape (2, j, 3), lengths 2 and 4   ->   values (6, 3), offsets 0, 2, 6

An operator that maps over leading dimensions (``...`` in its ``dims=``, or ``batch="elementwise"``) gives the
same for the values as for each row alone, so it is called with these. PyTorch has gradients of both steps.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nested._internal import nested_tensor as jagged

from ...call.bound import BoundOperator
from ...core.arguments import bind
from ...core.errors import ArgumentTypeError
from ...rules.elementwise import ElementwiseBatch
from . import tensors


def offer(bound: BoundOperator, library: Any, overload: Any, name: str) -> None:
    """Register what the overload does of nested tensors."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return _call(bound, overload, bind(bound.schema, args, kwargs))

    def rule(cls: type, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        del cls, function, types
        return call(*args, **(kwargs or {}))

    for key in ("AutogradNestedTensor", "NestedTensorCPU", "NestedTensorCUDA"):
        library.impl(name, call, key)
    torch.library.register_torch_dispatch(overload.name(), jagged.NestedTensor, rule, lib=library)


def _call(bound: BoundOperator, overload: Any, arguments: tuple[Any, ...]) -> Any:
    """Return what the call gives: the operator on the values, with the offsets of the nested tensors."""
    first: Any = None
    plain = list(arguments)
    for number, position in enumerate(bound.schema.tensor_positions):
        name, value = bound.schema.arguments[position].name, arguments[position]
        nested = _is_nested(value)
        if nested:
            _check(bound, number, name, value)
            first = value if first is None else first
            plain[position] = value.values()
        elif value is not None and _maps(bound, number):
            raise _error(bound, name, "must be a nested tensor, as another argument is", value)
    for position in bound.schema.tensor_positions:
        value = arguments[position]
        if _is_nested(value) and value.shape[first._ragged_idx] != first.shape[first._ragged_idx]:
            name = bound.schema.arguments[position].name
            raise _error(bound, name, "must have the offsets of the first nested tensor", value)
    positional, keywords = bound.schema.split(tensors.for_torch(bound.schema, tuple(plain)))
    outputs = tensors.as_outputs(overload(*positional, **keywords))
    results = tuple(_with_offsets_of(first, output) for output in outputs)
    return results[0] if len(results) == 1 else results


def _with_offsets_of(nested: Any, values: torch.Tensor) -> Any:
    """Return values as a nested tensor with the rows of another; PyTorch's public function logs a warning."""
    offsets, lengths, ragged = nested.offsets(), nested.lengths(), nested._ragged_idx
    if lengths is None:
        return jagged.nested_view_from_values_offsets(values, offsets, ragged_idx=ragged)
    return jagged.nested_view_from_values_offsets_lengths(values, offsets, lengths, ragged_idx=ragged)


def _is_nested(value: Any) -> bool:
    several = value if isinstance(value, (list, tuple)) else (value,)
    return any(isinstance(one, torch.Tensor) and one.is_nested for one in several)


def _maps(bound: BoundOperator, number: int) -> bool:
    """Whether the operator maps over the leading dimensions of a tensor argument."""
    dims = bound.operator.dims
    if dims is None:
        return isinstance(bound.operator.batch, ElementwiseBatch)
    return dims.inputs[number].ellipsis


def _check(bound: BoundOperator, number: int, name: str, value: Any) -> None:
    """Raise ``ArgumentTypeError`` unless the operator maps over the ragged dimension of an argument."""
    operator, dims = bound.operator, bound.operator.dims
    if operator.schema.mutates or operator.schema.returns_list or isinstance(value, (list, tuple)):
        raise _error(bound, name, "must be no nested tensor: what is written and lists must be plain", value)
    if value.layout is not torch.jagged:
        raise _error(
            bound, name, "must be a strided tensor, or a nested one of the layout torch.jagged", value
        )
    mapped = 0
    if _maps(bound, number) and (dims is None or all(entry.ellipsis for entry in dims.outputs)):
        mapped = value.dim() - (0 if dims is None else len(dims.inputs[number].dimensions))
    if mapped <= value._ragged_idx:
        rule = f"must be no nested tensor: the operator does not map over its dimension {value._ragged_idx}"
        raise _error(bound, name, rule, value)


def _error(bound: BoundOperator, name: str, rule: str, value: Any) -> ArgumentTypeError:
    hint = 'dims="... n -> ... n" and batch="elementwise" map over the dimensions in front'
    seen = f"{'nested ' * _is_nested(value)}{getattr(value, 'layout', type(value).__name__)}"
    where = bound.operator.origin
    return ArgumentTypeError(f"{bound.name}: argument {name}", rule, seen, where=where, hint=hint)
