"""Tensors for tests, once for the CPU and once for the NPU, in rehearsal."""

# ruff: noqa: NPY002, N803 - tests seed it by numpy.random.seed; the names are those of torch_npu

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

__all__ = ["create_common_tensor", "create_dtype_tensor", "get_npu_device", "set_npu_device"]


def get_npu_device() -> str:
    """Return the device of the tests."""
    return "npu:0"


set_npu_device = get_npu_device


def create_common_tensor(
    item: tuple[Any, int, Sequence[int]],
    minValue: float,
    maxValue: float,
    device: Any = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return random numbers for the CPU and the NPU. ``item`` is NumPy's dtype, a format and the shape."""
    dtype, _, shape = item
    return _both(np.random.uniform(minValue, maxValue, shape).astype(dtype), device)


def create_dtype_tensor(
    shape: Sequence[int],
    dtype: torch.dtype,
    npu_format: int = -1,
    min_value: float = -5,
    max_value: float = 5,
    no_zero: bool = False,
    device: Any = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return random numbers of PyTorch's dtype for the CPU and the NPU; ``no_zero`` makes ones of zeros."""
    del npu_format
    if dtype in (torch.half, torch.float):
        x = np.random.uniform(min_value, max_value, shape).astype(str(dtype).removeprefix("torch."))
    elif dtype == torch.bool:
        x = np.random.randint(0, 2, shape).astype(bool)
    else:
        x = np.random.randint(int(min_value), int(max_value) + 1, shape).astype(np.int32)
    return _both(np.where(x == 0, np.ones_like(x), x) if no_zero else x, device)


def _both(values: Any, device: Any) -> tuple[torch.Tensor, torch.Tensor]:
    tensor = torch.from_numpy(np.asarray(values))
    return tensor, tensor.to(device or get_npu_device())
