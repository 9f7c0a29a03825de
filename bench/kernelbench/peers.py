"""The functions of PyTorch that compute the problems."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its name in PyTorch's own documents


def function(name: str) -> Callable[..., Any]:
    """Return a function of this file, or of PyTorch: ``"torch.relu"``, ``"F.gelu"``."""
    first, *rest = name.split(".")
    found: Callable[..., Any] = functools.reduce(getattr, rest, globals()[first])
    return found


def scaled(a, factor):
    return a * factor


def matmul_4d(a, b):
    return torch.einsum("bijl,lk->bijk", a, b)


def diagonal_times_matrix(a, b):
    return a.unsqueeze(1) * b


def upper_times_upper(a, b):
    return torch.triu(torch.matmul(a, b))


def upper_times_upper_alone(a, b):
    """Compute the same, where what is below the diagonals has no gradient."""
    return torch.matmul(torch.triu(a), torch.triu(b))


def lower_times_lower(a, b):
    return torch.tril(torch.matmul(a, b))


def lower_times_lower_alone(a, b):
    """Compute the same, where what is above the diagonals has no gradient."""
    return torch.matmul(torch.tril(a), torch.tril(b))


def matmul_a_transposed(a, b):
    return torch.matmul(a.T, b)


def matmul_b_transposed(a, b):
    return torch.matmul(a, b.T)


def matmul_both_transposed(a, b):
    return torch.matmul(a.T, b.T)


def swish(x):
    return x * torch.sigmoid(x)


def hard_sigmoid_exactly(x):
    """Compute the same as ``F.hardsigmoid``, whose gradient in float64 has a sixth in float32."""
    return torch.clamp(x / 6 + 0.5, 0, 1)


def gelu_by_tanh(x):
    return F.gelu(x, approximate="tanh")


def batch_norm(x, weight, bias):
    return F.batch_norm(x, None, None, weight, bias, training=True)


def group_norm(x, weight, bias, groups):
    return F.group_norm(x, groups, weight, bias)


def rms_norm(x):
    return x / torch.sqrt(torch.mean(x**2, dim=1, keepdim=True) + 1e-5)


def frobenius_norm(x):
    return x / torch.linalg.vector_norm(x)


def l1_norm(x):
    return x / torch.mean(torch.abs(x), dim=1, keepdim=True)


def l2_norm(x):
    return x / torch.linalg.vector_norm(x, dim=1, keepdim=True)


def layer_norm(x, weight, bias):
    return F.layer_norm(x, x.shape[1:], weight, bias)


def softmax(x):
    return torch.softmax(x, dim=1)


def log_softmax(x):
    return torch.log_softmax(x, dim=1)


def sum_over_middle(x):
    return torch.sum(x, dim=1, keepdim=True)


def mean_over_middle(x):
    return torch.mean(x, dim=1)


def max_over_middle(x):
    return torch.max(x, dim=1).values


def min_over_middle(x):
    return torch.min(x, dim=1).values


def argmax_over_middle(x):
    return torch.argmax(x, dim=1)


def argmin_over_middle(x):
    return torch.argmin(x, dim=1)


def cumsum(x):
    return torch.cumsum(x, dim=1)


def cumprod(x):
    return torch.cumprod(x, dim=1)


def reverse_cumsum(x):
    return torch.cumsum(x.flip(1), dim=1).flip(1)


def exclusive_cumsum(x):
    return F.pad(torch.cumsum(x[:, :-1], dim=1), (1, 0))


def masked_cumsum(x, mask):
    return torch.cumsum(x * mask, dim=1)


def separable_conv2d(x, depth, point, padding):
    return F.conv2d(F.conv2d(x, depth, padding=padding, groups=x.shape[1]), point)


def kl_divergence(p, target):
    return F.kl_div(torch.log(p), target, reduction="batchmean")


def hinge(x, target):
    return torch.mean(torch.clamp(1 - x * target, min=0))
