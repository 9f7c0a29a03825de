"""Layers: MindSpore's constructors around PyTorch's functions."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional

from ...core.errors import ArgumentValueError
from ..cell import Cell
from ..common.initializer import initializer
from ..interpose import wrap
from ..parameter import Parameter
from .activation import activation as activation_of
from .pooling import check_pad_mode, margins, per_dimension


def _bias(init: Any, size: int, fan_in: int, dtype: Any) -> Any:
    if init is not None:
        return Parameter(initializer(init, (size,), dtype))
    bound = 1 / math.sqrt(fan_in) if fan_in else 0.0
    return Parameter(torch.nn.init.uniform_(initializer("zeros", (size,), dtype), -bound, bound))


def _weight(init: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    if init is not None:
        return Parameter(initializer(init, shape, dtype))
    return Parameter(torch.nn.init.kaiming_uniform_(initializer("zeros", shape, dtype), math.sqrt(5)))


class Dense(Cell):
    """``x @ weight.T + bias``, then the activation (a name or a cell)."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        weight_init: Any = None,
        bias_init: Any = None,
        has_bias: bool = True,
        activation: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels, self.has_bias = in_channels, out_channels, has_bias
        self.weight = _weight(weight_init, (out_channels, in_channels), dtype)
        self.bias = _bias(bias_init, out_channels, in_channels, dtype) if has_bias else None
        self.activation = activation_of(activation)

    def construct(self, x: Any) -> Any:
        """Return the layer's output."""
        value = wrap(functional.linear(x, self.weight, self.bias))
        return value if self.activation is None else self.activation(value)


class Conv2d(Cell):
    """A convolution over NCHW; ``pad_mode`` "same", "valid" or "pad" (by ``padding``)."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        pad_mode: str = "same",
        padding: Any = 0,
        dilation: Any = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.pad_mode, self.group = check_pad_mode("nn.Conv2d", pad_mode), group
        self.kernel_size, self.stride, self.dilation = map(per_dimension, (kernel_size, stride, dilation))
        shape = (out_channels, in_channels // group, *self.kernel_size)
        # MindSpore's order: top, bottom, left, right
        self.padding = (padding,) * 4 if isinstance(padding, int) else tuple(padding)
        if pad_mode != "pad" and any(self.padding):
            rule = f"padding must be 0 with pad_mode {pad_mode!r}"
            raise ArgumentValueError("nn.Conv2d", rule, padding, hint="pad_mode='pad' takes it")
        self.weight = _weight(weight_init, shape, dtype)
        self.bias = _bias(bias_init, out_channels, math.prod(shape[1:]), dtype) if has_bias else None

    def construct(self, x: Any) -> Any:
        """Return the convolution."""
        x = functional.pad(x, self._margins(x))
        settings = (self.stride, 0, self.dilation, self.group)
        return wrap(functional.conv2d(x, self.weight, self.bias, *settings))

    def _margins(self, x: Any) -> tuple[int, ...]:
        if self.pad_mode == "pad":
            return (*self.padding[2:], *self.padding[:2])  # PyTorch begins with the last dimension
        if self.pad_mode == "valid":
            return (0, 0, 0, 0)
        return margins(tuple(x.shape)[-2:], self.kernel_size, self.stride, self.dilation)


class Embedding(Cell):
    """A table whose rows are looked up by index."""

    def __init__(
        self, vocab_size: int, embedding_size: int, use_one_hot: bool = False, embedding_table: Any = "normal"
    ) -> None:
        super().__init__()
        del use_one_hot  # selects another implementation with the same result
        self.embedding_table = Parameter(initializer(embedding_table, (vocab_size, embedding_size)))

    def construct(self, ids: Any) -> Any:
        """Return the rows."""
        return wrap(functional.embedding(ids, self.embedding_table))


class Dropout(Cell):
    """Sets a fraction ``p`` (or ``1 - keep_prob``) of the entries to zero in training."""

    def __init__(self, keep_prob: float = 0.5, p: float | None = None) -> None:
        super().__init__()
        self.p = 1 - keep_prob if p is None else p

    def construct(self, x: Any) -> Any:
        """Return the entries."""
        return wrap(functional.dropout(x, self.p, self.training))


class Flatten(Cell):
    """Merges the dimensions from ``start_dim`` to ``end_dim`` into one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def construct(self, x: Any) -> Any:
        """Return the tensor with fewer dimensions."""
        return wrap(torch.flatten(x, self.start_dim, self.end_dim))
