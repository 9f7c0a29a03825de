"""Convolutions of one, two and three dimensions. Around an image are zeros, which are left out."""
# ruff: noqa: C901, F821 - deep nests; the language's words are not names of this module

from __future__ import annotations

from .windows import NO_PAIR, NO_TRIPLE, ONE_PAIR, ONE_TRIPLE, Pair, Triple, extent


def conv1d(x, w, stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1):
    channels, outputs = w.shape[1], w.shape[0] // groups
    n = extent(x.shape[2], w.shape[2], stride, padding, dilation)
    y = output_tensor((x.shape[0], w.shape[0], n), x.dtype)
    for b in range(x.shape[0]):
        for o in range(w.shape[0]):
            for i in range(n):
                total = 0.0
                for c in range(channels):
                    for p in range(w.shape[2]):
                        k = i * stride - padding + p * dilation
                        if 0 <= k < x.shape[2]:
                            total += x[b, o // outputs * channels + c, k] * w[o, c, p]
                y[b, o, i] = total
    return y


def conv2d(
    x,
    w,
    bias: Tensor | None = None,
    stride: Pair = ONE_PAIR,
    padding: Pair = NO_PAIR,
    dilation: Pair = ONE_PAIR,
    groups: int = 1,
):
    channels, outputs = w.shape[1], w.shape[0] // groups
    height = extent(x.shape[2], w.shape[2], stride.h, padding.h, dilation.h)
    width = extent(x.shape[3], w.shape[3], stride.w, padding.w, dilation.w)
    y = output_tensor((x.shape[0], w.shape[0], height, width), x.dtype)
    for b in range(x.shape[0]):
        for o in range(w.shape[0]):
            for i in range(height):
                for j in range(width):
                    total = 0.0 if bias is None else bias[o]
                    for c in range(channels):
                        for p in range(w.shape[2]):
                            for q in range(w.shape[3]):
                                h = i * stride.h - padding.h + p * dilation.h
                                v = j * stride.w - padding.w + q * dilation.w
                                if 0 <= h < x.shape[2] and 0 <= v < x.shape[3]:
                                    total += x[b, o // outputs * channels + c, h, v] * w[o, c, p, q]
                    y[b, o, i, j] = total
    return y


def conv3d(
    x,
    w,
    stride: Triple = ONE_TRIPLE,
    padding: Triple = NO_TRIPLE,
    dilation: Triple = ONE_TRIPLE,
    groups: int = 1,
):
    channels, outputs = w.shape[1], w.shape[0] // groups
    depth = extent(x.shape[2], w.shape[2], stride.d, padding.d, dilation.d)
    height = extent(x.shape[3], w.shape[3], stride.h, padding.h, dilation.h)
    width = extent(x.shape[4], w.shape[4], stride.w, padding.w, dilation.w)
    y = output_tensor((x.shape[0], w.shape[0], depth, height, width), x.dtype)
    for b, o, i, j, k in grid(y.shape):
        total = 0.0
        for c, p, q, r in grid(w.shape[1:]):
            d = i * stride.d - padding.d + p * dilation.d
            h = j * stride.h - padding.h + q * dilation.h
            v = k * stride.w - padding.w + r * dilation.w
            if 0 <= d < x.shape[2] and 0 <= h < x.shape[3] and 0 <= v < x.shape[4]:
                total += x[b, o // outputs * channels + c, d, h, v] * w[o, c, p, q, r]
        y[b, o, i, j, k] = total
    return y


def separable_conv2d(x, depth, point, padding: int = 0):
    """Filter each channel, then mix the channels at each place."""
    height = extent(x.shape[2], depth.shape[2], 1, padding, 1)
    width = extent(x.shape[3], depth.shape[3], 1, padding, 1)
    filtered = allocate((x.shape[0], x.shape[1], height, width), x.dtype)
    for b in range(x.shape[0]):
        for c in range(x.shape[1]):
            for i in range(height):
                for j in range(width):
                    total = 0.0
                    for p in range(depth.shape[2]):
                        for q in range(depth.shape[3]):
                            h, v = i - padding + p, j - padding + q
                            if 0 <= h < x.shape[2] and 0 <= v < x.shape[3]:
                                total += x[b, c, h, v] * depth[c, 0, p, q]
                    filtered[b, c, i, j] = total
    y = output_tensor((x.shape[0], point.shape[0], height, width), x.dtype)
    for b in range(x.shape[0]):
        for o in range(point.shape[0]):
            for i in range(height):
                for j in range(width):
                    total = 0.0
                    for c in range(x.shape[1]):
                        total += filtered[b, c, i, j] * point[o, c, 0, 0]
                    y[b, o, i, j] = total
    return y
