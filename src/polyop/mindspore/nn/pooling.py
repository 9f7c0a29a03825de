"""Pooling layers, and the windows of pooling and of convolutions: sizes per dimension, ``pad_mode``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torch.nn import functional

from ...core.errors import ArgumentValueError
from ..cell import Cell
from ..interpose import wrap


class _Pool(Cell):
    def __init__(self, kernel_size: Any = 1, stride: Any = 1, pad_mode: str = "valid") -> None:
        super().__init__()
        subject = f"nn.{type(self).__name__}"
        self.pad_mode = check_pad_mode(subject, pad_mode.lower())
        if self.pad_mode == "pad":
            hint = "pad the input: ops.pad"
            raise ArgumentValueError(
                subject, "pad_mode must be one of same, valid", repr(pad_mode), hint=hint
            )
        self.kernel_size, self.stride = map(per_dimension, (kernel_size, stride))

    def _padded(self, x: Any, value: float) -> Any:
        if self.pad_mode == "valid":
            return x
        return functional.pad(x, margins(tuple(x.shape)[-2:], self.kernel_size, self.stride), value=value)


class MaxPool2d(_Pool):
    """The largest value of each window; ``pad_mode`` "valid" or "same"."""

    def construct(self, x: Any) -> Any:
        """Return the pooled tensor."""
        return wrap(functional.max_pool2d(self._padded(x, -float("inf")), self.kernel_size, self.stride))


class AvgPool2d(_Pool):
    """The mean of each window; with ``pad_mode`` "same", of the entries that the input has."""

    def construct(self, x: Any) -> Any:
        """Return the pooled tensor."""
        mean = functional.avg_pool2d(self._padded(x, 0.0), self.kernel_size, self.stride)
        if self.pad_mode == "same":
            mean = mean / functional.avg_pool2d(
                self._padded(x.detach() * 0 + 1, 0.0), self.kernel_size, self.stride
            )
        return wrap(mean)


PAD_MODES = ("same", "valid", "pad")


def check_pad_mode(subject: str, pad_mode: str) -> str:
    """Return ``pad_mode``; raises ``ArgumentValueError`` for an unknown one."""
    if pad_mode not in PAD_MODES:
        raise ArgumentValueError(subject, f"pad_mode must be one of {', '.join(PAD_MODES)}", repr(pad_mode))
    return pad_mode


def per_dimension(value: Any) -> tuple[int, ...]:
    """Return one size for each of two dimensions."""
    return (value, value) if isinstance(value, int) else tuple(value)


def margins(
    sizes: Sequence[int], kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int] | None = None
) -> tuple[int, ...]:
    """Return the entries to add before and after each dimension for "same", the last dimension first."""
    added: tuple[int, ...] = ()
    for n, k, s, d in zip(sizes, kernel, stride, dilation or (1,) * len(kernel), strict=True):
        missing = max((math.ceil(n / s) - 1) * s + (k - 1) * d + 1 - n, 0)
        added = (missing // 2, missing - missing // 2, *added)
    return added
