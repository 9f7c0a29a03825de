"""What the Numba peers are written with; without Numba they remain plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

try:
    from numba import prange
    from numba.extending import register_jitable as part
except ImportError:
    prange = range

    def part(function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function: Numba's mark of what a compiled function may call."""
        return function


__all__ = ["exp_float32", "jit", "part", "prange"]


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the peer compiled by Numba, in parallel; raises ``ImportError`` without it."""
    import numba

    return numba.njit(parallel=True, fastmath=True, error_model="numpy")(function)


LOG2E, LN2_HIGH, LN2_LOW = np.float32(1.4426950408889634), np.float32(0.693359375), np.float32(-2.12194440e-4)
HALF, ONE, LOWEST = np.float32(0.5), np.float32(1), np.float32(-87)
C2, C3, C4 = np.float32(1 / 2), np.float32(1 / 6), np.float32(1 / 24)
C5, C6, C7 = np.float32(1 / 120), np.float32(1 / 720), np.float32(1 / 5040)


@part
def exp_float32(x):
    """Return e to the power x, for x below 88: without branches, as a loop of it must become vectors.

    The LLVM that Numba's wheels bring has no vector ``exp``.
    """
    x = max(x, LOWEST)
    n = np.floor(x * LOG2E + HALF)
    r = x - n * LN2_HIGH - n * LN2_LOW
    p = ONE + r * (ONE + r * (C2 + r * (C3 + r * (C4 + r * (C5 + r * (C6 + r * C7))))))
    return p * np.int32((np.int32(n) + 127) << 23).view(np.float32)
