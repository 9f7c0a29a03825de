"""Row reductions that normalise: softmax, layer norm, root-mean-square norm."""
# ruff: noqa: F821 - the language's words are not names of this module

from __future__ import annotations

from typing import Any

import numpy as np

from ..data import spread
from ..peers import exp_float32, part, prange
from ..table import Bound, Row, whole


def softmax(x):
    y = output_tensor(x.shape, x.dtype)
    n = x.shape[3]
    for b in range(x.shape[0]):
        for h in range(x.shape[1]):
            for i in range(x.shape[2]):
                top = x[b, h, i, 0]
                for j in range(n):
                    top = max(top, x[b, h, i, j])
                total = 0.0
                for j in range(n):
                    y[b, h, i, j] = exp(x[b, h, i, j] - top)
                    total += y[b, h, i, j]
                for j in range(n):
                    y[b, h, i, j] = y[b, h, i, j] / total
    return y


def softmax_numpy(x):
    y = np.exp(x - x.max(axis=-1, keepdims=True))
    y /= y.sum(axis=-1, keepdims=True)
    return y


LANES = 16


@part
def greatest(row, room):
    """Return the maximum of a row, by lanes in ``room``: Numba does not vectorise a plain maximum."""
    top = row[0]
    whole_part = len(row) // LANES * LANES
    if whole_part:
        lanes = room[:LANES]
        lanes[:] = row[:LANES]
        for j in range(LANES, whole_part, LANES):
            piece = row[j : j + LANES]
            for lane in range(LANES):
                # a select, as vectors are made of that
                if piece[lane] > lanes[lane]:
                    lanes[lane] = piece[lane]
        for lane in range(LANES):
            top = max(top, lanes[lane])
    for j in range(whole_part, len(row)):
        top = max(top, row[j])
    return top


def softmax_numba(x, out):
    rows, y = x.reshape((-1, x.shape[3])), out.reshape((-1, x.shape[3]))
    for i in prange(rows.shape[0]):
        top = greatest(rows[i], y[i])
        total = x.dtype.type(0)
        for j in range(rows.shape[1]):
            y[i, j] = exp_float32(rows[i, j] - top)
            total += y[i, j]
        factor = x.dtype.type(1) / total
        for j in range(rows.shape[1]):
            y[i, j] *= factor


def softmax_torch(x):
    return x.softmax(-1)


def logits(dtype: Any, n: int, h: int, sm: int) -> tuple[Any, ...]:
    return (spread((n, h, sm, sm), dtype, -3.0, 3.0),)


def layernorm(x, scale, shift, eps):
    y = output_tensor(x.shape, x.dtype)
    n = x.shape[1]
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(n):
            total += x[i, j]
        mean = total / n
        squares = 0.0
        for j in range(n):
            squares += (x[i, j] - mean) * (x[i, j] - mean)
        factor = 1.0 / sqrt(squares / n + eps)
        for j in range(n):
            y[i, j] = (x[i, j] - mean) * factor * scale[j] + shift[j]
    return y


def layernorm_numpy(x, scale, shift, eps):
    y = x - x.mean(axis=1, keepdims=True)
    y /= np.sqrt(np.square(y).mean(axis=1, keepdims=True) + eps)
    y *= scale
    y += shift
    return y


def layernorm_numba(x, scale, shift, eps, y):
    n = x.shape[1]
    for i in prange(x.shape[0]):
        total = x.dtype.type(0)
        for j in range(n):
            total += x[i, j]
        mean = x.dtype.type(total / n)
        squares = x.dtype.type(0)
        for j in range(n):
            squares += (x[i, j] - mean) * (x[i, j] - mean)
        factor = x.dtype.type(1 / np.sqrt(squares / n + eps))
        for j in range(n):
            y[i, j] = (x[i, j] - mean) * factor * scale[j] + shift[j]


def layernorm_torch(x, scale, shift, eps):
    from torch.nn.functional import layer_norm

    return layer_norm(x, x.shape[1:], scale, shift, eps)


def rows_and_scale(dtype: Any, rows: int, columns: int) -> tuple[Any, ...]:
    return spread((rows, columns), dtype, -1.0, 2.0), spread((columns,), dtype, 0.5, 1.5), 1e-5


def rows_scale_and_shift(dtype: Any, rows: int, columns: int) -> tuple[Any, ...]:
    x, scale, eps = rows_and_scale(dtype, rows, columns)
    return x, scale, spread((columns,), dtype, -1.0, 1.0, which=1), eps


def rms_norm(x, scale, eps):
    y = output_tensor(x.shape, x.dtype)
    n = x.shape[1]
    for i in range(x.shape[0]):
        squares = 0.0
        for j in range(n):
            squares += x[i, j] * x[i, j]
        factor = 1.0 / sqrt(squares / n + eps)
        for j in range(n):
            y[i, j] = x[i, j] * factor * scale[j]
    return y


def rms_norm_numpy(x, scale, eps):
    y = x / np.sqrt(np.square(x).mean(axis=1, keepdims=True) + eps)
    y *= scale
    return y


def rms_norm_numba(x, scale, eps, y):
    n = x.shape[1]
    for i in prange(x.shape[0]):
        squares = x.dtype.type(0)
        for j in range(n):
            squares += x[i, j] * x[i, j]
        factor = x.dtype.type(1 / np.sqrt(squares / n + eps))
        for j in range(n):
            y[i, j] = x[i, j] * factor * scale[j]


def rms_norm_torch(x, scale, eps):
    from torch.nn.functional import rms_norm

    return rms_norm(x, x.shape[1:], scale, eps)


def read_and_written(itemsize: int, rows: int, columns: int) -> float:
    return 2 * itemsize * rows * columns


ROWS = (
    Row(
        name="softmax",
        kind="row reduction",
        kernel=softmax,
        make=logits,
        numpy=softmax_numpy,
        numba=softmax_numba,
        torch=whole(softmax_torch),
        bounds=(
            Bound("bytes", lambda size, n, h, sm: 2 * size * n * h * sm * sm),
            Bound("calls", lambda size, n, h, sm: n * h * sm * sm),
        ),
        small={"n": 2, "h": 3, "sm": 5},
        bench={"n": 32, "h": 8, "sm": 256},
        dtype="float32",
    ),
    Row(
        name="layernorm",
        kind="row reduction",
        kernel=layernorm,
        make=rows_scale_and_shift,
        numpy=layernorm_numpy,
        numba=layernorm_numba,
        torch=whole(layernorm_torch),
        bounds=(Bound("bytes", read_and_written),),
        small={"rows": 5, "columns": 9},
        bench={"rows": 8192, "columns": 2048},
        dtype="float32",
    ),
    Row(
        name="rms_norm",
        kind="row reduction",
        kernel=rms_norm,
        make=rows_and_scale,
        numpy=rms_norm_numpy,
        numba=rms_norm_numba,
        torch=whole(rms_norm_torch),
        bounds=(Bound("bytes", read_and_written),),
        small={"rows": 5, "columns": 9},
        bench={"rows": 8192, "columns": 2048},
        dtype="float32",
    ),
)
