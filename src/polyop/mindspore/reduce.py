"""PyTorch's reductions with MindSpore's rule that no axis means all axes."""

from __future__ import annotations

from typing import Any

import torch

T = torch.Tensor


def reduce(function: Any, tensor: Any, axis: Any, keep: bool, **others: Any) -> Any:
    """Call a reduction; None or an empty tuple as the axis means all axes."""
    others = {name: value for name, value in others.items() if value is not None}
    if axis is None or (isinstance(axis, (tuple, list)) and not axis):
        if not keep:
            return function(tensor, **others)
        axis = tuple(range(tensor.dim()))
    return function(tensor, dim=axis, keepdim=keep, **others)
