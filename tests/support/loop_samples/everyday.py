# ruff: noqa: F821 - programs in the language, whose words are no names here
"""Programs: functions of NumPy and of ``math`` under their own names."""

import math

import numpy as np


def functions_of_numpy(x):
    y = output_tensor((x.shape[0], 9), x.dtype)
    for i in range(x.shape[0]):
        y[i, 0] = cbrt(x[i] - 1)
        y[i, 1] = copysign(x[i], 1 - x[i])
        y[i, 2] = fmod(-3 * x[i], x[i] + 0.7)
        y[i, 3] = mod(3 * x[i], 0.8)
        y[i, 4] = np.square(x[i]) + clip(x[i], 0.5, 1.5)
        y[i, 5] = degrees(x[i]) - radians(x[i])
        y[i, 6] = isclose(x[i], 1, 0.5) + math.isclose(x[i], 1, 0.5) * 2
        y[i, 7] = math.floor(x[i]) + math.ceil(x[i] * 2) % 3 + round(x[i], 1)
        y[i, 8] = logical_xor(x[i] > 1, x[i] > 2) * np.finfo(x.dtype).eps + min(x[i], float("inf"))
    return y


def divisors(x, w):
    y = output_tensor((x.shape[0], 5), x.dtype)
    for i in range(x.shape[0]):
        y[i, 0] = gcd(x[i], w[i])
        y[i, 1] = lcm(x[i], w[i])
        y[i, 2] = fmod(x[i], w[i])
        y[i, 3] = mod(x[i], w[i])
        y[i, 4] = np.iinfo(x.dtype).max - np.square(x[i])
    return y


def words(a):
    y = output_tensor((a.shape[0], a.shape[1], 8), a.dtype)
    for i in prange(a.shape[0]):
        for j in range(a.shape[1]):
            h = a[i, j]
            y[i, j, 0] = copysign(2 * h, a[0, 0]) + cbrt(h)
            y[i, j, 1] = fmod(h, 3) + mod(h, 2) + fmod(h, a[i, 0]) + mod(h, a[i, 0])
            y[i, j, 2] = gcd(i, j) + lcm(i + 1, j + 1)
            y[i, j, 3] = square(h) - clip(h, 1, a[i, 0])
            y[i, j, 4] = degrees(h / 90) + radians(h)
            y[i, j, 5] = logical_and(h, j) + 2 * logical_or(h, j) + 4 * logical_xor(h, j) + 8 * logical_not(h)
            y[i, j, 6] = isclose(h, a[i, 0], 1e-5, 1.0) + 2 * math.isclose(h, a[0, j], 0.5)
            y[i, j, 7] = math.floor(h) + math.ceil(h) * math.trunc(h) + round(h, 1)
    return y


def words_of_rows(a):
    y = np.zeros((a.shape[0], 5), "float64")
    for i in range(a.shape[0]):
        y[i, 0] = mean(a[i])
        y[i, 1] = any(a[i] > 1) + 2 * all(a[i])
        first, second = a[i, 0:2]
        y[i, 2], y[i, 3] = first, second
        y[i, 4] = finfo(float32).eps + iinfo(uint8).max
    return y
