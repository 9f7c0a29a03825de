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
    """Return copies of tensors as arrays."""
    return [tensors.over(value).copy() for value in outputs]


def arguments(case: Case, *, gradients: bool = False) -> tuple[Any, ...]:
    """Return the arguments as tensors; with ``gradients``, those of floating dtype require gradients."""

    def convert(_: str, value: Array) -> Any:
        tensor = to_torch(value, case.torch_device)
        differentiable = tensor.is_floating_point() or tensor.is_complex()
        return tensor.requires_grad_() if gradients and differentiable else tensor

    return case.map(convert)
