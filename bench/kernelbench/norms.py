"""Softmax, and tensors divided by a norm or a deviation."""
# ruff: noqa: C901, F821 - deep nests; the language's words are not names of this module

from __future__ import annotations


def softmax(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        top = x[i, 0]
        for j in range(1, x.shape[1]):
            top = max(top, x[i, j])
        total = 0.0
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - top)
            total += y[i, j]
        for j in range(x.shape[1]):
            y[i, j] /= total
    return y


def log_softmax(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        top = x[i, 0]
        for j in range(1, x.shape[1]):
            top = max(top, x[i, j])
        total = 0.0
        for j in range(x.shape[1]):
            total += exp(x[i, j] - top)
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] - top - log(total)
    return y


def batch_norm(x, weight, bias, eps: float = 1e-5):
    y = output_tensor(x.shape, x.dtype)
    count = x.shape[0] * x.shape[2] * x.shape[3]
    for c in range(x.shape[1]):
        mean = 0.0
        for n in range(x.shape[0]):
            for h in range(x.shape[2]):
                for w in range(x.shape[3]):
                    mean += x[n, c, h, w]
        mean /= count
        variance = 0.0
        for n in range(x.shape[0]):
            for h in range(x.shape[2]):
                for w in range(x.shape[3]):
                    variance += (x[n, c, h, w] - mean) ** 2
        variance /= count
        for n in range(x.shape[0]):
            for h in range(x.shape[2]):
                for w in range(x.shape[3]):
                    y[n, c, h, w] = (x[n, c, h, w] - mean) / sqrt(variance + eps) * weight[c] + bias[c]
    return y


def instance_norm(x, eps: float = 1e-5):
    y = output_tensor(x.shape, x.dtype)
    count = x.shape[2] * x.shape[3]
    for n in range(x.shape[0]):
        for c in range(x.shape[1]):
            mean = 0.0
            for h in range(x.shape[2]):
                for w in range(x.shape[3]):
                    mean += x[n, c, h, w]
            mean /= count
            variance = 0.0
            for h in range(x.shape[2]):
                for w in range(x.shape[3]):
                    variance += (x[n, c, h, w] - mean) ** 2
            variance /= count
            for h in range(x.shape[2]):
                for w in range(x.shape[3]):
                    y[n, c, h, w] = (x[n, c, h, w] - mean) / sqrt(variance + eps)
    return y


def group_norm(x, weight, bias, groups: int, eps: float = 1e-5):
    y = output_tensor(x.shape, x.dtype)
    size = x.shape[1] // groups
    count = size * x.shape[2] * x.shape[3]
    for n in range(x.shape[0]):
        for g in range(groups):
            mean = 0.0
            for c in range(g * size, (g + 1) * size):
                for h in range(x.shape[2]):
                    for w in range(x.shape[3]):
                        mean += x[n, c, h, w]
            mean /= count
            variance = 0.0
            for c in range(g * size, (g + 1) * size):
                for h in range(x.shape[2]):
                    for w in range(x.shape[3]):
                        variance += (x[n, c, h, w] - mean) ** 2
            variance /= count
            for c in range(g * size, (g + 1) * size):
                for h in range(x.shape[2]):
                    for w in range(x.shape[3]):
                        y[n, c, h, w] = (x[n, c, h, w] - mean) / sqrt(variance + eps) * weight[c] + bias[c]
    return y


def rms_norm(x, eps: float = 1e-5):
    """Divided by the root of the mean square over the channels, at each place of an image."""
    y = output_tensor(x.shape, x.dtype)
    for n in range(x.shape[0]):
        for h in range(x.shape[2]):
            for w in range(x.shape[3]):
                squares = 0.0
                for c in range(x.shape[1]):
                    squares += x[n, c, h, w] ** 2
                for c in range(x.shape[1]):
                    y[n, c, h, w] = x[n, c, h, w] / sqrt(squares / x.shape[1] + eps)
    return y


def frobenius_norm(x):
    y = output_tensor(x.shape, x.dtype)
    squares = 0.0
    for n, c, h, w in grid(x.shape):
        squares += x[n, c, h, w] ** 2
    for n, c, h, w in grid(x.shape):
        y[n, c, h, w] = x[n, c, h, w] / sqrt(squares)
    return y


def l1_norm(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += abs(x[i, j])
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] / (total / x.shape[1])
    return y


def l2_norm(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        squares = 0.0
        for j in range(x.shape[1]):
            squares += x[i, j] * x[i, j]
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] / sqrt(squares)
    return y


def layer_norm(x, weight, bias, eps: float = 1e-5):
    y = output_tensor(x.shape, x.dtype)
    count = x.shape[1] * x.shape[2] * x.shape[3]
    for n in range(x.shape[0]):
        mean = 0.0
        for c in range(x.shape[1]):
            for h in range(x.shape[2]):
                for w in range(x.shape[3]):
                    mean += x[n, c, h, w]
        mean /= count
        variance = 0.0
        for c in range(x.shape[1]):
            for h in range(x.shape[2]):
                for w in range(x.shape[3]):
                    variance += (x[n, c, h, w] - mean) ** 2
        variance /= count
        for c in range(x.shape[1]):
            for h in range(x.shape[2]):
                for w in range(x.shape[3]):
                    normal = (x[n, c, h, w] - mean) / sqrt(variance + eps)
                    y[n, c, h, w] = normal * weight[c, h, w] + bias[c, h, w]
    return y
