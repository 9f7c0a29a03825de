"""Functions of (array namespace, arrays) that the array API standard does not have.

Where a namespace has the function itself, as PyTorch's has, that one is used: it is
differentiable. The other branch is NumPy's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np


def axes(dim: Sequence[int]) -> tuple[int, ...] | None:
    """Return the axes of a reduction; an empty list stands for all of them, None to NumPy."""
    return tuple(dim) or None


def axis_of(dim: int, ndim: int) -> int:
    """Return the axis, counted from the front."""
    return dim + ndim if dim < 0 else dim


def floating(xp: Any, x: Any) -> Any:
    """Return the array, integers and booleans as floating numbers."""
    return xp.astype(x, xp.float64) if xp.isdtype(x.dtype, ("bool", "integral")) else x


def mean(xp: Any, x: Any, axis: Any, *, keepdims: bool = False) -> Any:
    """Return the mean; of no elements it is nan, without NumPy's warning."""
    x = floating(xp, x)
    total = xp.sum(x, axis=axis, keepdims=True)
    count = math.prod(x.shape) // max(math.prod(total.shape), 1) if math.prod(x.shape) else 0
    found = total / count if count else total * math.nan
    return found if keepdims else squeeze(xp, found, x.ndim, axis)


def squeeze(xp: Any, x: Any, ndim: int, axis: Any) -> Any:
    """Return the array without the axes that a reduction kept."""
    every = range(ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    gone = {axis_of(a, ndim) for a in every}
    return xp.reshape(x, tuple(size for i, size in enumerate(x.shape) if i not in gone))


def var(xp: Any, x: Any, axis: Any, correction: int, *, keepdims: bool = False) -> Any:
    """Return the variance with ``n - correction`` in the denominator, at least 0."""
    x = floating(xp, x)
    centred = x - mean(xp, x, axis, keepdims=True)
    total = xp.sum(centred * centred, axis=axis, keepdims=True)
    count = math.prod(x.shape) // max(math.prod(total.shape), 1)
    found = total / xp.asarray(float(max(count - correction, 0)), dtype=total.dtype)
    return found if keepdims else squeeze(xp, found, x.ndim, axis)


def erf(xp: Any, x: Any) -> Any:
    """Return the error function; element by element under NumPy, which has none."""
    if hasattr(xp, "erf"):
        return xp.erf(x)
    x = np.asarray(floating(xp, x))
    found = np.fromiter(map(math.erf, x.ravel().tolist()), np.float64, x.size)
    return found.reshape(x.shape).astype(x.dtype)


def erfc(xp: Any, x: Any) -> Any:
    """Return the complementary error function, which does not lose the tail."""
    if hasattr(xp, "special"):
        return xp.special.erfc(x)
    x = np.asarray(floating(xp, x))
    found = np.fromiter(map(math.erfc, x.ravel().tolist()), np.float64, x.size)
    return found.reshape(x.shape).astype(x.dtype)


def sigmoid(xp: Any, x: Any) -> Any:
    """Return ``1 / (1 + exp(-x))``."""
    return xp.sigmoid(x) if hasattr(xp, "sigmoid") else 1 / (1 + xp.exp(-floating(xp, x)))


def below(xp: Any, x: Any) -> Any:
    """Return ``min(x, 0)``: no branch that is not taken overflows."""
    return xp.where(x > 0, xp.zeros_like(x), x)


def softplus(xp: Any, x: Any) -> Any:
    """Return ``log(1 + exp(x))`` without overflow."""
    return xp.log1p(xp.exp(-xp.abs(x))) + xp.where(x > 0, x, xp.zeros_like(x))


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


def logsumexp(xp: Any, x: Any, axis: Any, *, keepdims: bool) -> Any:
    """Return ``log(sum(exp(x)))``; the largest element is taken out where it is finite."""
    x = floating(xp, x)
    top = xp.max(x, axis=axis, keepdims=True)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    found = xp.log(xp.sum(xp.exp(x - top), axis=axis, keepdims=True)) + top
    return found if keepdims else squeeze(xp, found, x.ndim, axis)


def power(xp: Any, base: Any, exponent: Any) -> Any:
    """Return ``base ** exponent``; integers to a negative power are what division gives: 0, 1 or -1."""
    whole = all(
        isinstance(v, int) or (hasattr(v, "dtype") and xp.isdtype(v.dtype, ("bool", "integral")))
        for v in (base, exponent)
    )
    if whole and bool(xp.any(xp.asarray(exponent) < 0)):
        return xp.trunc(xp.astype(xp.asarray(base), xp.float64) ** exponent)
    return base**exponent


def scaled(x: Any, factor: Any) -> Any:
    """Return ``factor * x``; a factor of 1 changes no dtype."""
    return x if factor == 1 else x * factor


def blend(product: Any, alpha: Any, x: Any, beta: Any) -> Any:
    """Return ``alpha * product + beta * x``; with beta 0, nothing of ``x`` is read."""
    made = scaled(product, alpha)
    return made if beta == 0 else made + scaled(x, beta)


def clamp(xp: Any, x: Any, low: Any, high: Any) -> Any:
    """Return the array within bounds, each a number, an array or None; nan stays, ``high`` wins."""
    if low is not None:
        x = xp.where(x < low, low, x)
    return x if high is None else xp.where(x > high, high, x)


def reduced(xp: Any, x: Any, reduction: int) -> Any:
    """Return a loss as it is (0), its mean (1) or its sum (2)."""
    if reduction == 0:
        return x
    return mean(xp, x, None) if reduction == 1 else xp.sum(x)
