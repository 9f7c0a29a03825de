"""MindSpore's rules for axes and dtypes: no axis means all axes, and which dtype a result has."""

from __future__ import annotations

from typing import Any

import torch

from .interpose import plain_attributes

T = torch.Tensor


def reduce(function: Any, tensor: Any, axis: Any, keep: bool, **others: Any) -> Any:
    """Call a reduction; None or an empty tuple as the axis means all axes."""
    if function is T.mean and not (tensor.is_floating_point() or tensor.is_complex()):
        return _whole_mean(tensor, axis, keep)
    others = {name: value for name, value in others.items() if value is not None}
    if axis is None or (isinstance(axis, (tuple, list)) and not axis):
        if not keep:
            return function(tensor, **others)
        axis = tuple(range(tensor.dim()))
    return function(tensor, dim=axis, keepdim=keep, **others)


def _whole_mean(tensor: Any, axis: Any, keep: bool) -> Any:
    # MindSpore's mean of integers is an integer, rounded towards zero
    with plain_attributes():
        kind, number = tensor.dtype, tensor.numel()
    total = reduce(T.sum, tensor, axis, keep, dtype=kind)
    with plain_attributes():
        count = number // max(total.numel(), 1)
    return torch.div(total, count, rounding_mode="trunc").to(kind)


def promoted(x: Any, y: Any) -> tuple[Any, Any]:
    """Return two operands in one dtype if one is a tensor without dimensions and the other is not.

    PyTorch ignores the dtype of such a tensor. MindSpore does so in products and quotients only.
    """
    if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor):
        with plain_attributes():
            if x.dtype != y.dtype and (x.dim() == 0) != (y.dim() == 0):
                kind = torch.promote_types(x.dtype, y.dtype)
                return torch.Tensor.to(x, kind), torch.Tensor.to(y, kind)
    return x, y
