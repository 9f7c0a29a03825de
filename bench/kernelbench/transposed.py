"""Transposed convolutions: each element adds its multiple of the filter to the output, if that is inside."""
# ruff: noqa: F821 - the language's words are not names of this module

from __future__ import annotations

from .windows import NO_PAIR, NO_TRIPLE, ONE_PAIR, ONE_TRIPLE, Pair, Triple, transposed_extent


def conv_transposed_1d(x, w, stride: int = 1, padding: int = 0, dilation: int = 1):
    n = transposed_extent(x.shape[2], w.shape[2], stride, padding, dilation, 0)
    y = output_tensor((x.shape[0], w.shape[1], n), x.dtype)
    for b in range(x.shape[0]):
        for o in range(w.shape[1]):
            for c in range(x.shape[1]):
                for i in range(x.shape[2]):
                    for p in range(w.shape[2]):
                        k = i * stride - padding + p * dilation
                        if 0 <= k < n:
                            y[b, o, k] += x[b, c, i] * w[c, o, p]
    return y


def conv_transposed_2d(
    x,
    w,
    stride: Pair = ONE_PAIR,
    padding: Pair = NO_PAIR,
    dilation: Pair = ONE_PAIR,
    groups: int = 1,
):
    channels, outputs = x.shape[1] // groups, w.shape[1]
    height = transposed_extent(x.shape[2], w.shape[2], stride.h, padding.h, dilation.h, 0)
    width = transposed_extent(x.shape[3], w.shape[3], stride.w, padding.w, dilation.w, 0)
    y = output_tensor((x.shape[0], groups * outputs, height, width), x.dtype)
    for b in range(x.shape[0]):
        for g in range(groups):
            for o in range(outputs):
                for c in range(channels):
                    for i in range(x.shape[2]):
                        for j in range(x.shape[3]):
                            for p in range(w.shape[2]):
                                for q in range(w.shape[3]):
                                    h = i * stride.h - padding.h + p * dilation.h
                                    v = j * stride.w - padding.w + q * dilation.w
                                    if 0 <= h < height and 0 <= v < width:
                                        y[b, g * outputs + o, h, v] += (
                                            x[b, g * channels + c, i, j] * w[g * channels + c, o, p, q]
                                        )
    return y


def conv_transposed_3d(
    x,
    w,
    stride: Triple = ONE_TRIPLE,
    padding: Triple = NO_TRIPLE,
    dilation: Triple = ONE_TRIPLE,
    groups: int = 1,
    output_padding: int = 0,
):
    channels, outputs = x.shape[1] // groups, w.shape[1]
    depth = transposed_extent(x.shape[2], w.shape[2], stride.d, padding.d, dilation.d, output_padding)
    height = transposed_extent(x.shape[3], w.shape[3], stride.h, padding.h, dilation.h, output_padding)
    width = transposed_extent(x.shape[4], w.shape[4], stride.w, padding.w, dilation.w, output_padding)
    y = output_tensor((x.shape[0], groups * outputs, depth, height, width), x.dtype)
    for b, g, o, c in grid((x.shape[0], groups, outputs, channels)):
        for i, j, k in grid(x.shape[2:]):
            for p, q, r in grid(w.shape[2:]):
                d = i * stride.d - padding.d + p * dilation.d
                h = j * stride.h - padding.h + q * dilation.h
                v = k * stride.w - padding.w + r * dilation.w
                if 0 <= d < depth and 0 <= h < height and 0 <= v < width:
                    y[b, g * outputs + o, d, h, v] += (
                        x[b, g * channels + c, i, j, k] * w[g * channels + c, o, p, q, r]
                    )
    return y
