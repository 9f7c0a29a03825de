"""Names and functions that the Numba peers use; without Numba they are plain Python."""

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
        """Return the function; with Numba, this marks a function that compiled ones may call."""
        return function


__all__ = ["angle_float64", "exp_float32", "jit", "part", "prange", "sin_float64"]


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the peer compiled by Numba, in parallel; raises ``ImportError`` without it."""
    import numba

    return numba.njit(parallel=True, fastmath=True, error_model="numpy")(function)


LOG2E, LN2_HIGH, LN2_LOW = np.float32(1.4426950408889634), np.float32(0.693359375), np.float32(-2.12194440e-4)
HALF, ONE, LOWEST = np.float32(0.5), np.float32(1), np.float32(-87)
C2, C3, C4 = np.float32(1 / 2), np.float32(1 / 6), np.float32(1 / 24)
C5, C6, C7 = np.float32(1 / 120), np.float32(1 / 720), np.float32(1 / 5040)

PI_HIGH, PI_LOW = 3.141592653589793, 1.2246467991473532e-16


@part
def exp_float32(x):
    """Return e to the power x, for x below 88, without branches, so that a loop can be vectorised.

    The LLVM in Numba's wheels has no vector ``exp``.
    """
    x = max(x, LOWEST)
    n = np.floor(x * LOG2E + HALF)
    r = x - n * LN2_HIGH - n * LN2_LOW
    p = ONE + r * (ONE + r * (C2 + r * (C3 + r * (C4 + r * (C5 + r * (C6 + r * C7))))))
    return p * np.int32((np.int32(n) + 127) << 23).view(np.float32)


@part
def sin_float64(x):
    """Return the sine of a modest x: Taylor's series of the distance to the nearest multiple of pi."""
    n = np.floor(x / PI_HIGH + 0.5)
    r = x - n * PI_HIGH - n * PI_LOW
    z = -r * r
    p = 1 + z / 272 * (1 + z / 342 * (1 + z / 420))
    p = 1 + z / 72 * (1 + z / 110 * (1 + z / 156 * (1 + z / 210 * p)))
    p = 1 + z / 6 * (1 + z / 20 * (1 + z / 42 * p))
    return r * p * (1 - 2 * (n - 2 * np.floor(n / 2)))


@part
def angle_float64(y, x):
    """Return atan2 for two numbers that are not negative, nor both zero, by Moshier's rational function."""
    t = min(x, y) / max(x, y)
    wide = t > 0.4142135623730951  # tan(pi / 8)
    t = (t - 1) / (t + 1) if wide else t
    z = t * t
    p = -16.15753718733365 + z * -0.8750608600031904
    p = -64.85021904942025 + z * (-122.8866684490136 + z * (-75.00855792314705 + z * p))
    q = 165.0270098316988 + z * (24.858464901423062 + z)
    q = 194.5506571482614 + z * (485.3903996359137 + z * (432.88106049129027 + z * q))
    low = t + t * z * p / q + (PI_HIGH / 4 if wide else 0.0)
    return PI_HIGH / 2 - low if y > x else low
