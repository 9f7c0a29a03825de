"""Maxima and means of windows. A window that reaches over the border has elements of the inside only."""
# ruff: noqa: F821 - the language's words are not names of this module

from __future__ import annotations

import math

from .windows import extent


def max_pool_1d(x, kernel_size: int, stride: int, padding: int = 0, dilation: int = 1):
    n = extent(x.shape[2], kernel_size, stride, padding, dilation)
    y = output_tensor((x.shape[0], x.shape[1], n), x.dtype)
    for b in range(x.shape[0]):
        for c in range(x.shape[1]):
            for i in range(n):
                top = -math.inf
                for p in range(kernel_size):
                    k = i * stride - padding + p * dilation
                    if 0 <= k < x.shape[2]:
                        top = max(top, x[b, c, k])
                y[b, c, i] = top
    return y


def max_pool_2d(x, kernel_size: int, stride: int, padding: int = 0, dilation: int = 1):
    height = extent(x.shape[2], kernel_size, stride, padding, dilation)
    width = extent(x.shape[3], kernel_size, stride, padding, dilation)
    y = output_tensor((x.shape[0], x.shape[1], height, width), x.dtype)
    for b in range(x.shape[0]):
        for c in range(x.shape[1]):
            for i in range(height):
                for j in range(width):
                    top = -math.inf
                    for p in range(kernel_size):
                        for q in range(kernel_size):
                            h = i * stride - padding + p * dilation
                            w = j * stride - padding + q * dilation
                            if 0 <= h < x.shape[2] and 0 <= w < x.shape[3]:
                                top = max(top, x[b, c, h, w])
                    y[b, c, i, j] = top
    return y


def max_pool_3d(x, kernel_size: int, stride: int, padding: int = 0, dilation: int = 1):
    depth = extent(x.shape[2], kernel_size, stride, padding, dilation)
    height = extent(x.shape[3], kernel_size, stride, padding, dilation)
    width = extent(x.shape[4], kernel_size, stride, padding, dilation)
    y = output_tensor((x.shape[0], x.shape[1], depth, height, width), x.dtype)
    for b, c, i, j, k in grid(y.shape):
        top = -math.inf
        for p, q, r in grid((kernel_size, kernel_size, kernel_size)):
            d = i * stride - padding + p * dilation
            h = j * stride - padding + q * dilation
            w = k * stride - padding + r * dilation
            if 0 <= d < x.shape[2] and 0 <= h < x.shape[3] and 0 <= w < x.shape[4]:
                top = max(top, x[b, c, d, h, w])
        y[b, c, i, j, k] = top
    return y


def average_pool_1d(x, kernel_size: int, stride: int, padding: int = 0):
    n = extent(x.shape[2], kernel_size, stride, padding, 1)
    y = output_tensor((x.shape[0], x.shape[1], n), x.dtype)
    for b in range(x.shape[0]):
        for c in range(x.shape[1]):
            for i in range(n):
                total = 0.0
                for p in range(kernel_size):
                    k = i * stride - padding + p
                    if 0 <= k < x.shape[2]:
                        total += x[b, c, k]
                y[b, c, i] = total / kernel_size
    return y


def average_pool_2d(x, kernel_size: int, stride: int, padding: int = 0):
    height = extent(x.shape[2], kernel_size, stride, padding, 1)
    width = extent(x.shape[3], kernel_size, stride, padding, 1)
    y = output_tensor((x.shape[0], x.shape[1], height, width), x.dtype)
    for b in range(x.shape[0]):
        for c in range(x.shape[1]):
            for i in range(height):
                for j in range(width):
                    total = 0.0
                    for p in range(kernel_size):
                        for q in range(kernel_size):
                            h = i * stride - padding + p
                            w = j * stride - padding + q
                            if 0 <= h < x.shape[2] and 0 <= w < x.shape[3]:
                                total += x[b, c, h, w]
                    y[b, c, i, j] = total / (kernel_size * kernel_size)
    return y


def average_pool_3d(x, kernel_size: int, stride: int, padding: int = 0):
    depth = extent(x.shape[2], kernel_size, stride, padding, 1)
    height = extent(x.shape[3], kernel_size, stride, padding, 1)
    width = extent(x.shape[4], kernel_size, stride, padding, 1)
    y = output_tensor((x.shape[0], x.shape[1], depth, height, width), x.dtype)
    for b, c, i, j, k in grid(y.shape):
        total = 0.0
        for p, q, r in grid((kernel_size, kernel_size, kernel_size)):
            d = i * stride - padding + p
            h = j * stride - padding + q
            w = k * stride - padding + r
            if 0 <= d < x.shape[2] and 0 <= h < x.shape[3] and 0 <= w < x.shape[4]:
                total += x[b, c, d, h, w]
        y[b, c, i, j, k] = total / kernel_size**3
    return y
