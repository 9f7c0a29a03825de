"""Functions of (array namespace, arrays) that the array API standard lacks.

A namespace's own function is used if it exists, as in PyTorch's, where it is differentiable. The
other branch is for NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np


def axes(dim: Sequence[int]) -> tuple[int, ...] | None:
    """Return the axes of a reduction; an empty list means all axes, which is None for NumPy."""
    return tuple(dim) or None


def floating(xp: Any, x: Any) -> Any:
    """Return the array, converted to float64 if it has integers or booleans."""
    return xp.astype(x, xp.float64) if xp.isdtype(x.dtype, ("bool", "integral")) else x


def mean(xp: Any, x: Any, axis: Any, *, keepdims: bool = False) -> Any:
    """Return the mean; for no elements it is nan, without NumPy's warning."""
    x = floating(xp, x)
    return xp.sum(x, axis=axis, keepdims=keepdims) / _count(x, axis)


def var(xp: Any, x: Any, axis: Any, correction: int, *, keepdims: bool = False) -> Any:
    """Return the variance with ``max(n - correction, 0)`` in the denominator."""
    x = floating(xp, x)
    centred = x - mean(xp, x, axis, keepdims=True)
    total = xp.sum(centred * centred, axis=axis, keepdims=keepdims)
    return total / max(_count(x, axis) - correction, 0)


def _count(x: Any, axis: tuple[int, ...] | None) -> int:
    """Return how many elements are reduced to one."""
    return math.prod(x.shape if axis is None else [x.shape[a] for a in axis])


def erf(xp: Any, x: Any) -> Any:
    """Return the error function; NumPy has none, so there it runs element by element."""
    if hasattr(xp, "erf"):
        return xp.erf(x)
    x = np.asarray(floating(xp, x))
    values = np.fromiter(map(math.erf, x.ravel().tolist()), np.float64, x.size)
    return values.reshape(x.shape).astype(x.dtype)


def sigmoid(xp: Any, x: Any) -> Any:
    """Return ``1 / (1 + exp(-x))``."""
    return xp.sigmoid(x) if hasattr(xp, "sigmoid") else 1 / (1 + xp.exp(-floating(xp, x)))


def softmax(xp: Any, x: Any, axis: int) -> Any:
    """Return the softmax along one axis."""
    if 0 in x.shape:
        return x
    shifted = xp.exp(x - xp.max(x, axis=axis, keepdims=True)) if x.ndim else xp.ones_like(x)
    return shifted / xp.sum(shifted, axis=axis, keepdims=True) if x.ndim else shifted


def log_softmax(xp: Any, x: Any, axis: int) -> Any:
    """Return the logarithm of the softmax along one axis."""
    if 0 in x.shape or not x.ndim:
        return x * 0
    shifted = x - xp.max(x, axis=axis, keepdims=True)
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis=axis, keepdims=True))


def power(xp: Any, base: Any, exponent: Any) -> Any:
    """Return ``base ** exponent``; an integer to a negative power is truncated: 0, 1 or -1."""
    whole = all(
        isinstance(v, int) or (hasattr(v, "dtype") and xp.isdtype(v.dtype, ("bool", "integral")))
        for v in (base, exponent)
    )
    if whole and bool(xp.any(xp.asarray(exponent) < 0)):
        return xp.trunc(xp.astype(xp.asarray(base), xp.float64) ** exponent)
    return base**exponent


def scaled(x: Any, factor: Any) -> Any:
    """Return ``factor * x``; a factor of 1 does not change the dtype."""
    return x if factor == 1 else x * factor


def blend(product: Any, alpha: Any, x: Any, beta: Any) -> Any:
    """Return ``alpha * product + beta * x``; ``x`` is not read if beta is 0."""
    result = scaled(product, alpha)
    return result if beta == 0 else result + scaled(x, beta)
