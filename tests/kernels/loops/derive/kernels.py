# ruff: noqa: F821 - programs in the language, whose words are no names here
"""Kernels for the tests of transforms, each with inputs: what frameworks do with derived rules."""

import numpy as np


def matmul(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = 0.0
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return c


def softmax(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        m = x[i, 0]
        for j in range(1, x.shape[1]):
            m = max(m, x[i, j])
        s = 0.0
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - m)
            s += y[i, j]
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] / s
    return y


def layernorm(x, gain, bias):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        mean = 0.0
        for j in range(x.shape[1]):
            mean += x[i, j]
        mean = mean / x.shape[1]
        square = 0.0
        for j in range(x.shape[1]):
            square += (x[i, j] - mean) * (x[i, j] - mean)
        r = 1.0 / sqrt(square / x.shape[1] + 1e-5)
        for j in range(x.shape[1]):
            y[i, j] = (x[i, j] - mean) * r * gain[j] + bias[j]
    return y


def stencil(a):
    b = output_tensor(a.shape, a.dtype)
    for i in range(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            b[i, j] = a[i, j] * (a[i + 1, j] - a[i - 1, j]) + 0.1 * (a[i, j - 1] + a[i, j + 1])
    return b


def scan(a, x):
    y = output_tensor(x.shape, x.dtype)
    for b in range(x.shape[0]):
        h = x[b, 0]
        y[b, 0] = h
        for t in range(1, x.shape[1]):
            h = a[b, t] * h + x[b, t]
            y[b, t] = h * h
    return y


def gather(x, at):
    y = output_tensor((at.shape[0], x.shape[1]), x.dtype)
    for i in range(at.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[at[i], j] * x[at[i], j]
    return y


def scatter(x, at):
    y = output_tensor(x.shape, x.dtype)
    for i in range(at.shape[0]):
        for j in range(x.shape[1]):
            y[at[i], j] += x[i, j] * x[i, j]
    return y


_random = np.random.default_rng(7)
CASES = {
    function.__name__: (function, [_random.normal(size=shape) for shape in shapes], whole)
    for function, shapes, whole in (
        (matmul, [(2, 3), (3, 2)], []),
        (softmax, [(2, 4)], []),
        (layernorm, [(2, 4), (4,), (4,)], []),
        (stencil, [(4, 5)], []),
        (scan, [(2, 4), (2, 4)], []),
        (gather, [(3, 2)], [np.array([2, 0, 2, 1])]),
        (scatter, [(3, 2)], [np.array([2, 0, 2])]),
    )
}
"""Function, real inputs, then inputs of whole numbers."""
