"""Copies whose dimensions change places: a transposition, and the heads of attention (permute 0213)."""
# ruff: noqa: F821 - the language's words are not names of this module

from __future__ import annotations

from typing import Any

import numpy as np

from ..data import spread
from ..peers import prange
from ..table import Bound, Row, whole

SIDE = 32


def transpose(x):
    y = output_tensor((x.shape[1], x.shape[0]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j, i] = x[i, j]
    return y


def transpose_numpy(x):
    return np.ascontiguousarray(x.T)


def transpose_numba(x, y):
    n, m = x.shape
    for tile in prange((m + SIDE - 1) // SIDE):
        for first in range(0, n, SIDE):
            for j in range(tile * SIDE, min(m, (tile + 1) * SIDE)):
                for i in range(first, min(n, first + SIDE)):
                    y[j, i] = x[i, j]


def transpose_torch(x):
    return x.t().contiguous()


def permute_0213(x):
    y = output_tensor((x.shape[0], x.shape[2], x.shape[1], x.shape[3]), x.dtype)
    for b in range(x.shape[0]):
        for s in range(x.shape[1]):
            for h in range(x.shape[2]):
                for d in range(x.shape[3]):
                    y[b, h, s, d] = x[b, s, h, d]
    return y


def permute_0213_numpy(x):
    return np.ascontiguousarray(x.transpose(0, 2, 1, 3))


def permute_0213_numba(x, y):
    for row in prange(x.shape[0] * x.shape[2]):
        b, h = row // x.shape[2], row % x.shape[2]
        for s in range(x.shape[1]):
            for d in range(x.shape[3]):
                y[b, h, s, d] = x[b, s, h, d]


def permute_0213_torch(x):
    return x.permute(0, 2, 1, 3).contiguous()


def matrix(dtype: Any, rows: int, columns: int) -> tuple[Any, ...]:
    return (spread((rows, columns), dtype),)


def heads(dtype: Any, batch: int, length: int, heads: int, depth: int) -> tuple[Any, ...]:
    return (spread((batch, length, heads, depth), dtype),)


ROWS = (
    Row(
        name="transpose",
        kind="elementwise",
        kernel=transpose,
        make=matrix,
        numpy=transpose_numpy,
        numba=transpose_numba,
        torch=whole(transpose_torch),
        bounds=(Bound("bytes", lambda size, rows, columns: 2 * size * rows * columns),),
        small={"rows": 5, "columns": 9},
        bench={"rows": 4096, "columns": 2048},
        dtype="float32",
    ),
    Row(
        name="permute_0213",
        kind="elementwise",
        kernel=permute_0213,
        make=heads,
        numpy=permute_0213_numpy,
        numba=permute_0213_numba,
        torch=whole(permute_0213_torch),
        bounds=(
            Bound(
                "bytes", lambda size, batch, length, heads, depth: 2 * size * batch * length * heads * depth
            ),
        ),
        small={"batch": 2, "length": 3, "heads": 4, "depth": 5},
        bench={"batch": 16, "length": 512, "heads": 16, "depth": 64},
        dtype="float32",
    ),
)
