"""Functions whose arguments differ from PyTorch's: reductions, shapes, indexing, matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional

from ...core.errors import ArgumentTypeError
from ..dtype import to_torch
from ..interpose import plain, wrap, wrap_new
from ..reduce import T, reduce
from .arguments import Function, as_tensor, axes_of, sizes, wrapped


def reduction(name: str) -> Function:
    """Return a function ``(input, axis, keep_dims)`` that calls PyTorch's reduction of this name."""
    function = getattr(T, name)

    def call(
        input: Any,  # noqa: A002 - MindSpore's name
        axis: Any = None,
        keep_dims: bool = False,
        *,
        keepdims: bool = False,
        keepdim: bool = False,
        dim: Any = None,
        dtype: Any = None,
    ) -> Any:
        axes = axes_of(dim if axis is None else axis)
        keep = keep_dims or keepdims or keepdim
        return wrap(reduce(function, input, axes, keep, dtype=to_torch(dtype)))

    call.__name__, call.__doc__ = name, f"Return the {name} over ``axis``, or over all."
    return call


def extreme(name: str) -> Function:
    """Return a function ``(input, axis, keepdims)`` for extreme values and their indices."""
    function = getattr(torch, name)

    def call(input: Any, axis: Any = None, keepdims: bool = False) -> Any:  # noqa: A002
        if axis is None:  # MindSpore's index is zero then
            return wrap((function(input), torch.zeros((), dtype=torch.int64, device=plain(input).device)))
        return wrap(tuple(function(input, axis, keepdims)))

    call.__name__, call.__doc__ = name, f"Return ({name} values, their indices)."
    return call


def spread(name: str) -> Function:
    """Return ``std`` or ``var``: ``ddof`` is subtracted from the number of entries."""
    function = getattr(T, name)

    def call(input: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:  # noqa: A002
        return wrap(reduce(function, input, axis, keepdims, correction=int(ddof)))

    call.__name__, call.__doc__ = name, f"Return the {name} over ``axis``, or over all."
    return call


def int32_indices(name: str) -> Function:
    """Return PyTorch's function of this name, with indices in Int32 as MindSpore's."""
    function = wrapped(getattr(torch, name))

    def call(*args: Any, **kwargs: Any) -> Any:
        found = function(*args, **{_OF_TORCH.get(key, key): value for key, value in kwargs.items()})
        if isinstance(found, torch.Tensor):
            return wrap(found.to(torch.int32))
        return wrap((found[0], found[1].to(torch.int32)))

    call.__name__, call.__doc__ = name, f"PyTorch's {name}; indices are Int32."
    return call


_OF_TORCH = {"axis": "dim", "keepdims": "keepdim"}


def flatten(input: Any, order: str = "C", *, start_dim: int = 1, end_dim: int = -1) -> Any:  # noqa: A002
    """Return the tensor with ``start_dim`` to ``end_dim`` merged; order "F" is column-major."""
    if order == "F":
        input = torch.permute(input, tuple(range(input.dim()))[::-1])  # noqa: A001
    first = start_dim if input.dim() > 1 else 0
    return wrap_new(torch.flatten(input, first, end_dim), (input,))


def cumsum(x: Any, axis: Any, dtype: Any = None) -> Any:
    """Return the running sum along a dimension, in the dtype of ``x`` or ``dtype``."""
    return wrap(torch.cumsum(x, axis, dtype=to_torch(dtype) or to_torch(x.dtype)))


def reduce_sum(x: Any, axis: Any = None, keep_dims: bool = False) -> Any:
    """Return the sum over ``axis``, or over all, in the dtype of ``x``."""
    return wrap(reduce(T.sum, x, axes_of(axis), keep_dims, dtype=to_torch(x.dtype)))


def reshape(input: Any, shape: Any) -> Any:  # noqa: A002
    """Return the tensor with another shape."""
    return wrap(input.reshape(sizes(shape)))


def transpose(input: Any, input_perm: Any) -> Any:  # noqa: A002
    """Return the tensor with its dimensions permuted."""
    return wrap(torch.permute(input, sizes(input_perm)))


def squeeze(input: Any, axis: Any = None) -> Any:  # noqa: A002
    """Return the tensor without its dimensions of size 1, or without those in ``axis``."""
    return wrap(torch.squeeze(input) if axis is None else torch.squeeze(input, axis))


def broadcast_to(input: Any, shape: Any) -> Any:  # noqa: A002
    """Return the tensor repeated to a shape; -1 keeps a size."""
    return wrap(torch.broadcast_to(input, sizes(shape)))


def tile(input: Any, repeats: Any) -> Any:  # noqa: A002
    """Return the tensor repeated along each dimension."""
    return wrap(torch.tile(input, sizes(repeats)))


def concat(tensors: Sequence[Any], axis: int = 0) -> Any:
    """Return tensors joined along a dimension; raises ``ArgumentTypeError`` for a single tensor."""
    if isinstance(tensors, torch.Tensor):
        raise ArgumentTypeError("concat", "tensors must be a list or a tuple of tensors", "a Tensor")
    return wrap(torch.cat(list(tensors), axis))


def stack(tensors: Sequence[Any], axis: int = 0) -> Any:
    """Return tensors joined along a new dimension; a single tensor is one of them."""
    return wrap(torch.stack([tensors] if isinstance(tensors, torch.Tensor) else list(tensors), axis))


def unstack(input_x: Any, axis: int = 0) -> Any:
    """Return the tuple of slices along a dimension."""
    return wrap(torch.unbind(input_x, axis))


def split(tensor: Any, split_size_or_sections: Any, axis: int = 0) -> Any:
    """Return a tuple of parts of this size, or of these sizes."""
    return wrap(torch.split(tensor, split_size_or_sections, axis))


def gather(input_params: Any, input_indices: Any, axis: Any, batch_dims: int = 0) -> Any:
    """Return the slices of ``axis`` at the indices; the first ``batch_dims`` dimensions are batches."""
    dim = axis % input_params.dim()
    if batch_dims:
        parts = [
            gather(x, i, dim - 1, batch_dims - 1) for x, i in zip(input_params, input_indices, strict=True)
        ]
        return wrap(torch.stack(parts))
    selected = torch.index_select(input_params, dim, input_indices.reshape(-1))
    shape, indices_shape = tuple(input_params.shape), tuple(input_indices.shape)
    return wrap(selected.reshape((*shape[:dim], *indices_shape, *shape[dim + 1 :])))


def one_hot(indices: Any, depth: int, on_value: Any = 1, off_value: Any = 0, axis: int = -1) -> Any:
    """Return ``on_value`` at each index and ``off_value`` elsewhere, along a new dimension."""
    hot = functional.one_hot(indices.long(), depth).bool()
    values = torch.where(hot, as_tensor(on_value), as_tensor(off_value))
    return wrap(values if axis == -1 else torch.movedim(values, -1, axis))


def meshgrid(*inputs: Any, indexing: str = "xy") -> Any:
    """Return coordinate grids; with "xy" (the default) the first two dimensions are swapped."""
    return wrap(torch.meshgrid(*inputs, indexing=indexing))


def softmax(input: Any, axis: int = -1, *, dtype: Any = None) -> Any:  # noqa: A002
    """Return the softmax along a dimension."""
    return wrap(torch.softmax(input, axis, dtype=to_torch(dtype)))


def log_softmax(logits: Any, axis: int = -1) -> Any:
    """Return the logarithm of ``softmax``."""
    return wrap(torch.log_softmax(logits, axis))


def size(input_x: Any) -> int:
    """Return the number of entries."""
    return int(input_x.numel())


def shape(input_x: Any) -> tuple[int, ...]:
    """Return the shape as a tuple."""
    return tuple(input_x.shape)


def depend(value: Any, expr: Any) -> Any:
    """Return ``value``. ``expr`` is an argument, so it has been computed before."""
    del expr
    return value


def assign(variable: Any, value: Any) -> Any:
    """Write a value into a parameter and return it."""
    return _write(variable, lambda: variable.copy_(as_tensor(value)))


def assign_add(variable: Any, value: Any) -> Any:
    """Add a value to a parameter in place and return it."""
    return _write(variable, lambda: variable.add_(value))


def assign_sub(variable: Any, value: Any) -> Any:
    """Subtract a value from a parameter in place and return it."""
    return _write(variable, lambda: variable.sub_(value))


def _write(variable: Any, write: Any) -> Any:
    with torch.no_grad():
        write()
    return variable


_BY_NAME = (
    "argmax", "bmm", "chunk", "dot", "einsum", "flip", "index_select", "inner", "isclose", "logsumexp",
    "masked_select", "matmul", "mm", "narrow", "nonzero", "outer", "permute", "repeat_interleave", "swapaxes",
    "swapdims", "tril", "triu", "unbind", "unsqueeze",
)  # fmt: skip

_SAME = {
    **{name: getattr(torch, name) for name in _BY_NAME},
    "expand_dims": torch.unsqueeze,
    "gather_elements": torch.gather,
    "rank": torch.Tensor.dim,
    "bias_add": torch.add,
    "pad": functional.pad,
}

FUNCTIONS: dict[str, Function] = {
    **{name: wrapped(function) for name, function in _SAME.items()},
    **{name: reduction(name) for name in ("sum", "mean", "prod", "any", "all", "amax", "amin")},
    "max": extreme("max"),
    "min": extreme("min"),
    "std": spread("std"),
    "var": spread("var"),
    **{name: int32_indices(name) for name in ("argmin", "argsort", "sort", "topk")},
    "reduce_mean": reduction("mean"),
    "reduce_max": reduction("amax"),
    "reduce_min": reduction("amin"),
    "cat": concat,
    **{
        function.__name__: function
        for function in (
            reshape, transpose, squeeze, broadcast_to, tile, concat, stack, unstack, split, gather, one_hot,
            flatten, cumsum, reduce_sum, meshgrid, softmax, log_softmax, size, shape, depend,
            assign, assign_add, assign_sub,
        )
    },
}  # fmt: skip
