"""Reductions over the middle dimension of three, and running sums and products along rows."""
# ruff: noqa: F821 - the language's words are not names of this module

from __future__ import annotations


def sum_over_middle(x):
    """Return the sums, with the dimension as one of size 1."""
    y = output_tensor((x.shape[0], 1, x.shape[2]), x.dtype)
    for b in range(x.shape[0]):
        for j in range(x.shape[2]):
            for i in range(x.shape[1]):
                y[b, 0, j] += x[b, i, j]
    return y


def mean_over_middle(x):
    y = output_tensor((x.shape[0], x.shape[2]), x.dtype)
    for b in range(x.shape[0]):
        for j in range(x.shape[2]):
            total = 0.0
            for i in range(x.shape[1]):
                total += x[b, i, j]
            y[b, j] = total / x.shape[1]
    return y


def max_over_middle(x):
    y = output_tensor((x.shape[0], x.shape[2]), x.dtype)
    for b in range(x.shape[0]):
        for j in range(x.shape[2]):
            top = x[b, 0, j]
            for i in range(1, x.shape[1]):
                top = max(top, x[b, i, j])
            y[b, j] = top
    return y


def min_over_middle(x):
    y = output_tensor((x.shape[0], x.shape[2]), x.dtype)
    for b in range(x.shape[0]):
        for j in range(x.shape[2]):
            least = float("inf")
            for i in range(x.shape[1]):
                if x[b, i, j] < least:
                    least = x[b, i, j]
            y[b, j] = least
    return y


def argmax_over_middle(x):
    y = output_tensor((x.shape[0], x.shape[2]), "int64")
    for b in range(x.shape[0]):
        for j in range(x.shape[2]):
            top, where_top = x[b, 0, j], 0
            for i in range(1, x.shape[1]):
                if x[b, i, j] > top:
                    top, where_top = x[b, i, j], i
            y[b, j] = where_top
    return y


def argmin_over_middle(x):
    y = output_tensor((x.shape[0], x.shape[2]), "int64")
    for b in range(x.shape[0]):
        for j in range(x.shape[2]):
            best = 0
            for i in range(1, x.shape[1]):
                if x[b, i, j] < x[b, best, j]:
                    best = i
            y[b, j] = best
    return y


def cumsum(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += x[i, j]
            y[i, j] = total
    return y


def cumprod(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        product = 1.0
        for j in range(x.shape[1]):
            product *= x[i, j]
            y[i, j] = product
    return y


def reverse_cumsum(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        total = 0.0
        for j in reversed(range(x.shape[1])):
            total += x[i, j]
            y[i, j] = total
    return y


def exclusive_cumsum(x):
    """Return the sum of the elements before each."""
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(1, x.shape[1]):
            y[i, j] = y[i, j - 1] + x[i, j - 1]
    return y


def masked_cumsum(x, mask):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            if mask[i, j]:
                total += x[i, j]
            y[i, j] = total
    return y
