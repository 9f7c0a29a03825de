"""Functions of each element of a matrix."""
# ruff: noqa: F821 - the language's words are not names of this module

from __future__ import annotations

import math

ALPHA, SCALE = 1.6732632423543772, 1.0507009873554805
"""Of SELU: those for which a normal distribution keeps its mean 0 and its variance 1."""


def relu(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = max(x[i, j], 0)
    return y


def leaky_relu(x, slope: float = 0.01):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > 0:
                y[i, j] = x[i, j]
            else:
                y[i, j] = slope * x[i, j]
    return y


def logistic(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = 1 / (1 + exp(-x[i, j]))
    return y


def hyperbolic_tangent(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = math.tanh(x[i, j])
    return y


def swish(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * sigmoid(x[i, j])
    return y


def gelu(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = 0.5 * x[i, j] * (1 + math.erf(x[i, j] / math.sqrt(2)))
    return y


def selu(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            v = x[i, j]
            y[i, j] = SCALE * (v if v > 0 else ALPHA * (math.exp(v) - 1))
    return y


def hard_sigmoid(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = min(max(x[i, j] / 6 + 0.5, 0), 1)
    return y


def softplus(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > 20:
                y[i, j] = x[i, j]
            else:
                y[i, j] = log1p(exp(x[i, j]))
    return y


def softsign(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] / (1 + abs(x[i, j]))
    return y


def elu(x, alpha: float = 1.0):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] if x[i, j] > 0 else alpha * expm1(x[i, j])
    return y


def hard_tanh(x, low: float = -1.0, high: float = 1.0):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] < low:
                y[i, j] = low
            elif x[i, j] > high:
                y[i, j] = high
            else:
                y[i, j] = x[i, j]
    return y


def gelu_by_tanh(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            v = x[i, j]
            y[i, j] = 0.5 * v * (1 + tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)))
    return y
