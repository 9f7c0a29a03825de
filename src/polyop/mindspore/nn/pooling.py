"""Pooling layers: MindSpore's constructors around PyTorch's functions."""

from __future__ import annotations

from typing import Any

from torch.nn import functional

from ...core.errors import ArgumentValueError
from ..cell import Cell
from ..interpose import wrap
from .windows import check_pad_mode, margins, per_dimension


class _Pool(Cell):
    _count = 2  # spatial dimensions

    def __init__(self, kernel_size: Any = 1, stride: Any = 1, pad_mode: str = "valid") -> None:
        super().__init__()
        subject = f"nn.{type(self).__name__}"
        self.pad_mode = check_pad_mode(subject, pad_mode.lower())
        if self.pad_mode == "pad":
            hint = "pad the input: ops.pad"
            raise ArgumentValueError(
                subject, "pad_mode must be one of same, valid", repr(pad_mode), hint=hint
            )
        self.kernel_size = per_dimension(kernel_size, self._count)
        self.stride = per_dimension(stride, self._count)

    def _padded(self, x: Any, value: float) -> Any:
        if self.pad_mode == "valid":
            return x
        sides = margins(tuple(x.shape)[-self._count :], self.kernel_size, self.stride)
        return functional.pad(x, sides, value=value)


class MaxPool2d(_Pool):
    """The largest value of each window; ``pad_mode`` "valid" or "same"."""

    def construct(self, x: Any) -> Any:
        """Return the pooled tensor."""
        pool = functional.max_pool2d if self._count == 2 else functional.max_pool1d
        return wrap(pool(self._padded(x, -float("inf")), self.kernel_size, self.stride))


class AvgPool2d(_Pool):
    """The mean of each window; with ``pad_mode`` "same", of the entries that the input has."""

    def construct(self, x: Any) -> Any:
        """Return the pooled tensor."""
        pool = functional.avg_pool2d if self._count == 2 else functional.avg_pool1d
        mean = pool(self._padded(x, 0.0), self.kernel_size, self.stride)
        if self.pad_mode == "same":
            mean = mean / pool(self._padded(x.detach() * 0 + 1, 0.0), self.kernel_size, self.stride)
        return wrap(mean)


class MaxPool1d(MaxPool2d):
    """The largest value of each window of the last dimension."""

    _count = 1


class AvgPool1d(AvgPool2d):
    """The mean of each window of the last dimension."""

    _count = 1
