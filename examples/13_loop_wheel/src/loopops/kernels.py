"""The loop kernels: plain Python, compiled when the wheel is built."""
# ruff: noqa: F821 - output_tensor, exp and max are words of the language

import polyop

SMALLEST = 1e-6


@polyop.kernel
def softmax(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        most = x[i, 0]
        for j in range(1, x.shape[1]):
            most = max(most, x[i, j])
        total = 0.0
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - most)
            total += y[i, j]
        for j in range(x.shape[1]):
            y[i, j] /= total
    return y


@polyop.kernel
def softmax_gradient(y, dy):
    dx = output_tensor(y.shape, y.dtype)
    for i in range(y.shape[0]):
        dot = 0.0
        for j in range(y.shape[1]):
            dot += y[i, j] * dy[i, j]
        for j in range(y.shape[1]):
            dx[i, j] = y[i, j] * (dy[i, j] - dot)
    return dx


@polyop.kernel
def scale(x, factor: float = 2.0):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * max(factor, SMALLEST)
    return y
