"""PolyBench's medley: shortest paths, folding of a sequence, an edge filter."""
# ruff: noqa: F821 - the language's words are not names of this module

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..data import spread
from ..table import Program


def floyd_warshall(path):
    n = path.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                path[i, j] = min(path[i, j], path[i, k] + path[k, j])
    return path


def floyd_warshall_numpy(path):
    for k in range(len(path)):
        np.minimum(path, path[:, k, None] + path[k], out=path)
    return path


def distances(dtype: Any, n: int) -> tuple[Any, ...]:
    path = spread((n, n), dtype, 1.0, 100.0)
    np.fill_diagonal(path, 0)
    return (path,)


def nussinov(seq):
    n = seq.shape[0]
    table = output_tensor((n, n), seq.dtype)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            table[i, j] = max(table[i, j], table[i, j - 1])
            table[i, j] = max(table[i, j], table[i + 1, j])
            if i < j - 1:
                match = 1 if seq[i] + seq[j] == 3 else 0
                table[i, j] = max(table[i, j], table[i + 1, j - 1] + match)
            else:
                table[i, j] = max(table[i, j], table[i + 1, j - 1])
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
    return table


def nussinov_numpy(seq):
    n = len(seq)
    table = np.zeros((n, n), seq.dtype)
    for gap in range(2, n):  # by the length of the piece; the kernel goes by where it begins
        for i in range(n - gap):
            j = i + gap
            splits = table[i, i:j] + table[i + 1 : j + 1, j]
            table[i, j] = max(splits.max(), table[i + 1, j - 1] + (seq[i] + seq[j] == 3))
    return table


def bases(_dtype: Any, n: int) -> tuple[Any, ...]:
    """Return a sequence of the numbers 0 to 3, always as int32."""
    return ((spread((n,), "float64") * 4).astype(np.int32),)


# The filter as Deriche derived it: PolyBench's coefficients are not quite these, its loops are.
def deriche(x, alpha):  # noqa: C901 - loop nests in a row
    w = x.shape[0]
    h = x.shape[1]
    y1 = allocate((w, h), x.dtype)
    y2 = allocate((w, h), x.dtype)
    rows = allocate((w, h), x.dtype)
    out = output_tensor((w, h), x.dtype)
    decay = exp(-alpha)
    k = (1.0 - decay) * (1.0 - decay) / (1.0 + 2.0 * alpha * decay - decay * decay)
    a2 = k * decay * (alpha - 1.0)
    a3 = k * decay * (alpha + 1.0)
    a4 = -k * decay * decay
    b1 = 2.0 * decay
    b2 = -decay * decay
    for i in range(w):
        ym1 = 0.0
        ym2 = 0.0
        xm1 = 0.0
        for j in range(h):
            y1[i, j] = k * x[i, j] + a2 * xm1 + b1 * ym1 + b2 * ym2
            xm1 = x[i, j]
            ym2 = ym1
            ym1 = y1[i, j]
    for i in range(w):
        yp1 = 0.0
        yp2 = 0.0
        xp1 = 0.0
        xp2 = 0.0
        for j in range(h - 1, -1, -1):
            y2[i, j] = a3 * xp1 + a4 * xp2 + b1 * yp1 + b2 * yp2
            xp2 = xp1
            xp1 = x[i, j]
            yp2 = yp1
            yp1 = y2[i, j]
    for i in range(w):
        for j in range(h):
            rows[i, j] = y1[i, j] + y2[i, j]
    for j in range(h):
        tm1 = 0.0
        ym1 = 0.0
        ym2 = 0.0
        for i in range(w):
            y1[i, j] = k * rows[i, j] + a2 * tm1 + b1 * ym1 + b2 * ym2
            tm1 = rows[i, j]
            ym2 = ym1
            ym1 = y1[i, j]
    for j in range(h):
        tp1 = 0.0
        tp2 = 0.0
        yp1 = 0.0
        yp2 = 0.0
        for i in range(w - 1, -1, -1):
            y2[i, j] = a3 * tp1 + a4 * tp2 + b1 * yp1 + b2 * yp2
            tp2 = tp1
            tp1 = rows[i, j]
            yp2 = yp1
            yp1 = y2[i, j]
    for i in range(w):
        for j in range(h):
            out[i, j] = y1[i, j] + y2[i, j]
    return out


def deriche_matrix(n: int, alpha: float) -> Any:
    """Return the smoothing filter along one axis as a matrix of its impulse responses."""
    d = math.exp(-alpha)
    k = (1 - d) ** 2 / (1 + 2 * alpha * d - math.exp(-2 * alpha))
    away = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    return k * (1 + alpha * away) * np.exp(-alpha * away)


def deriche_numpy(x, alpha):
    rows, columns = deriche_matrix(x.shape[1], alpha), deriche_matrix(x.shape[0], alpha)
    return (columns @ x @ rows).astype(x.dtype)


def image(dtype: Any, w: int, h: int) -> tuple[Any, ...]:
    return spread((w, h), dtype), 0.25


def program(name: str, kind: Any, kernel: Any, make: Any, numpy: Any, **more: Any) -> Program:
    return Program(name=name, kind=kind, kernel=kernel, make=make, numpy=numpy, **more)


PROGRAMS = (
    program(
        "floyd-warshall",
        "stencil",
        floyd_warshall,
        distances,
        floyd_warshall_numpy,
        small={"n": 7},
        bench={"n": 500},
        updates=(0,),
    ),
    program(
        "nussinov",
        "scan",
        nussinov,
        bases,
        nussinov_numpy,
        small={"n": 12},
        bench={"n": 500},
        dtype="int32",
    ),
    program(
        "deriche",
        "scan",
        deriche,
        image,
        deriche_numpy,
        small={"w": 7, "h": 9},
        bench={"w": 720, "h": 480},
    ),
)
