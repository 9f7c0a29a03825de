"""A case's arrays as PyTorch tensors and back. Import this file only where PyTorch is used."""

from __future__ import annotations

from typing import Any

import torch

from ...hosts.torch import tensors
from ..case import Array, Case


def to_torch(array: Array, device: str) -> Any:
    """Return a tensor with a copy of the array's values."""
    return tensors.from_numpy(array.copy(order="C"), torch.device(device))


def to_arrays(outputs: list[Any]) -> list[Array]:
    """Return tensors as arrays of their own."""
    return [tensors.over(value).copy() for value in outputs]


def arguments(case: Case, *, gradients: bool = False) -> tuple[Any, ...]:
    """Return the arguments as tensors, those of floating dtype requiring gradients if asked."""

    def convert(_: str, value: Array) -> Any:
        made = to_torch(value, case.torch_device)
        differentiable = made.is_floating_point() or made.is_complex()
        return made.requires_grad_() if gradients and differentiable else made

    return case.map(convert)
