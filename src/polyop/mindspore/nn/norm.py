"""Layers that normalise."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from ..cell import Cell
from ..common.initializer import initializer
from ..interpose import plain_attributes, wrap
from ..parameter import Parameter


class LayerNorm(Cell):
    """Normalises over the last dimensions, whose sizes are ``normalized_shape``."""

    def __init__(
        self,
        normalized_shape: Any,
        begin_norm_axis: int = -1,
        begin_params_axis: int = -1,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        epsilon: float = 1e-7,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape, self.epsilon = tuple(normalized_shape), epsilon
        self.begin_norm_axis, self.begin_params_axis = begin_norm_axis, begin_params_axis
        self.gamma = Parameter(initializer(gamma_init, self.normalized_shape, dtype))
        self.beta = Parameter(initializer(beta_init, self.normalized_shape, dtype))

    def construct(self, input_x: Any) -> Any:
        """Return the normalised tensor, scaled and shifted."""
        sizes = tuple(input_x.shape)[self.begin_norm_axis :]
        return wrap(functional.layer_norm(input_x, sizes, eps=self.epsilon) * self.gamma + self.beta)


class GroupNorm(Cell):
    """Normalises the channels of each of ``num_groups`` groups together."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self.gamma = Parameter(initializer(gamma_init, (num_channels,), dtype), requires_grad=affine)
        self.beta = Parameter(initializer(beta_init, (num_channels,), dtype), requires_grad=affine)

    def construct(self, x: Any) -> Any:
        """Return the normalised tensor, scaled and shifted."""
        return wrap(functional.group_norm(x, self.num_groups, self.gamma, self.beta, self.eps))


class BatchNorm2d(Cell):
    """Normalises each channel of NCHW: by the batch in training, else by the moving mean and variance."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.9,
        affine: bool = True,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        moving_mean_init: Any = "zeros",
        moving_var_init: Any = "ones",
        use_batch_statistics: bool | None = None,
    ) -> None:
        super().__init__()
        self.eps, self.momentum, self.use_batch_statistics = eps, momentum, use_batch_statistics
        shape = (num_features,)
        self.moving_mean = Parameter(initializer(moving_mean_init, shape), "mean", requires_grad=False)
        self.moving_variance = Parameter(initializer(moving_var_init, shape), "variance", requires_grad=False)
        self.gamma = Parameter(initializer(gamma_init, shape), requires_grad=affine)
        self.beta = Parameter(initializer(beta_init, shape), requires_grad=affine)

    def construct(self, x: Any) -> Any:
        """Return the normalised tensor, scaled and shifted; in training, update the moving averages."""
        by_batch = self.training if self.use_batch_statistics is None else self.use_batch_statistics
        mean, variance = self.moving_mean, self.moving_variance
        with torch.no_grad(), plain_attributes():
            averages = mean.detach(), variance.detach()  # the same memory
        scale = self.gamma, self.beta
        return wrap(functional.batch_norm(x, *averages, *scale, by_batch, 1 - self.momentum, self.eps))


class BatchNorm1d(BatchNorm2d):
    """Normalises each channel of NC or NCL, as ``BatchNorm2d`` does."""
