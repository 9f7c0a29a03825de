"""Deterministic input data, without a generator or a seed: the same on every machine."""

from __future__ import annotations

from typing import Any

import numpy as np

PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)


def spread(shape: Any, dtype: Any, low: float = 0.0, high: float = 1.0, which: int = 0) -> Any:
    """Return values spread evenly over ``[low, high)``: multiples of irrational steps, modulo one.

    ``which`` selects the steps, so that inputs of a kernel differ. No second array of the size is allocated.
    """
    out = np.zeros(shape, dtype)
    for axis, extent in enumerate(out.shape):
        step = PRIMES[(which + 3 * axis) % len(PRIMES)] ** 0.5 + 0.1 * which
        line = (step * np.arange(1, extent + 1)) % 1.0
        out += line.astype(dtype).reshape([-1 if k == axis else 1 for k in range(out.ndim)])
    np.remainder(out, 1, out=out)
    out *= high - low
    out += low
    return out


def positive_definite(n: int, dtype: Any) -> Any:
    """Return a symmetric positive definite matrix with a modest condition number."""
    half = spread((n, n), "float64", -1.0, 1.0)
    return (half @ half.T / n + np.eye(n)).astype(dtype)
