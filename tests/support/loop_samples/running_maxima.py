# ruff: noqa: F821 - kernels, whose words are no names here
"""Kernels with a running maximum, for tests of several passes."""

import math


def prefixes(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        t = -math.inf
        s = 0.0
        for j in range(x.shape[1]):
            before = t
            t = max(t, x[i, j])
            s = s * exp(before - t) + exp(x[i, j] - t)
            y[i, j] = exp(x[i, j] - t) / s
    return y


def rescaled_one_step_late(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        t = x[i, 0]
        before = t
        s = 0.0
        for j in range(x.shape[1]):
            s = s * exp(before - t) + exp(x[i, j] - t)
            before = t
            t = max(t, x[i, j])
        y[i] = t + log(s)
    return y
