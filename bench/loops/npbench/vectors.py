"""Kernels that read a matrix once or twice: products with vectors, sums, a trace."""
# ruff: noqa: F821 - the language's words are not names of this module

from __future__ import annotations

from typing import Any

import numpy as np

from ..data import spread
from ..peers import prange
from ..table import Bound, Row, whole
from .dense import like

PIECES = 8  # of the rows: each has its own partial sums


def atax_numba(a, x, y):
    m, n = a.shape
    partial = np.zeros((PIECES, n), a.dtype)
    for piece in prange(PIECES):
        for i in range(piece * m // PIECES, (piece + 1) * m // PIECES):
            s = a.dtype.type(0)
            for j in range(n):
                s += a[i, j] * x[j]
            for j in range(n):
                partial[piece, j] += a[i, j] * s
    y[:] = partial.sum(axis=0)


def atax_torch(a, x):
    return (a @ x) @ a


def gemver_numba(a, u1, v1, u2, v2, y, z, alpha, beta, x, w):
    n = a.shape[0]
    partial = np.zeros((PIECES, n), a.dtype)
    for piece in prange(PIECES):
        for i in range(piece * n // PIECES, (piece + 1) * n // PIECES):
            factor = beta * y[i]
            for j in range(n):
                a[i, j] += u1[i] * v1[j] + u2[i] * v2[j]
                partial[piece, j] += factor * a[i, j]
    x[:] = z + partial.sum(axis=0)
    for i in prange(n):
        s = a.dtype.type(0)
        for j in range(n):
            s += a[i, j] * x[j]
        w[i] = alpha * s


def gemver_torch(a, u1, v1, u2, v2, y, z, alpha, beta):
    a += u1[:, None] * v1 + u2[:, None] * v2
    x = beta * (y @ a) + z
    return a, x, alpha * (a @ x)


def gesummv_numba(a, b, x, alpha, beta, y):
    for i in prange(a.shape[0]):
        s = a.dtype.type(0)
        t = a.dtype.type(0)
        for j in range(a.shape[1]):
            s += a[i, j] * x[j]
            t += b[i, j] * x[j]
        y[i] = alpha * s + beta * t


def gesummv_torch(a, b, x, alpha, beta):
    return alpha * (a @ x) + beta * (b @ x)


def column_sums(x):
    y = output_tensor((x.shape[1],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j] += x[i, j]
    return y


def column_sums_numpy(x):
    return x.sum(axis=0)


def column_sums_numba(x, y):
    m, n = x.shape
    partial = np.zeros((PIECES, n), x.dtype)
    for piece in prange(PIECES):
        for i in range(piece * m // PIECES, (piece + 1) * m // PIECES):
            for j in range(n):
                partial[piece, j] += x[i, j]
    y[:] = partial.sum(axis=0)


def column_sums_torch(x):
    return x.sum(0)


def matrix(dtype: Any, rows: int, columns: int) -> tuple[Any, ...]:
    return (spread((rows, columns), dtype),)


def go_fast(a):
    n = a.shape[0]
    out = output_tensor((n, n), a.dtype)
    trace = 0.0
    for i in range(n):
        trace += tanh(a[i, i])
    for i in range(n):
        for j in range(n):
            out[i, j] = a[i, j] + trace
    return out


def go_fast_numpy(a):
    return a + np.tanh(np.diag(a)).sum()


def go_fast_numba(a, out):
    trace = a.dtype.type(0)
    for i in prange(a.shape[0]):
        trace += np.tanh(a[i, i])
    for i in prange(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = a[i, j] + trace


def go_fast_torch(a):
    return a + a.diagonal().tanh().sum()


def square(dtype: Any, n: int) -> tuple[Any, ...]:
    return (spread((n, n), dtype, -1.0, 1.0),)


ROWS = (
    like(
        "atax",
        "atax",
        numba=atax_numba,
        torch=whole(atax_torch),
        bounds=(Bound("bytes", lambda size, m, n: size * m * n),),
        bench={"m": 10000, "n": 12500},
    ),
    like(
        "gemver",
        "gemver",
        numba=gemver_numba,
        torch=whole(gemver_torch),
        # x needs all of the new matrix, and w all of x: read and written, then read again
        bounds=(Bound("bytes", lambda size, n: 3 * size * n * n),),
        bench={"n": 3000},
    ),
    like(
        "gesummv",
        "gesummv",
        numba=gesummv_numba,
        torch=whole(gesummv_torch),
        bounds=(Bound("bytes", lambda size, n: 2 * size * n * n),),
        bench={"n": 4000},
    ),
    Row(
        name="column_sums",
        kind="column reduction",
        kernel=column_sums,
        make=matrix,
        numpy=column_sums_numpy,
        numba=column_sums_numba,
        torch=whole(column_sums_torch),
        bounds=(Bound("bytes", lambda size, rows, columns: size * rows * columns),),
        small={"rows": 9, "columns": 7},
        bench={"rows": 8192, "columns": 2048},
        dtype="float32",
    ),
    Row(
        name="go_fast",
        kind="elementwise",
        kernel=go_fast,
        make=square,
        numpy=go_fast_numpy,
        numba=go_fast_numba,
        torch=whole(go_fast_torch),
        bounds=(Bound("bytes", lambda size, n: 2 * size * n * n),),
        small={"n": 7},
        bench={"n": 6000},
    ),
)
