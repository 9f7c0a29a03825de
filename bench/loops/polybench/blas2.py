"""PolyBench's products of matrices and vectors."""
# ruff: noqa: F821 - the language's words are not names of this module

from __future__ import annotations

from typing import Any

import numpy as np

from ..data import spread
from ..table import Program


def atax(a, x):
    y = output_tensor((a.shape[1],), a.dtype)
    for i in range(a.shape[0]):
        s = 0.0
        for j in range(a.shape[1]):
            s += a[i, j] * x[j]
        for j in range(a.shape[1]):
            y[j] += a[i, j] * s
    return y


def atax_numpy(a, x):
    return (a @ x) @ a


def atax_data(dtype: Any, m: int, n: int) -> tuple[Any, ...]:
    return spread((m, n), dtype, high=1.0 / n), spread((n,), dtype, 1.0, 2.0)


def bicg(a, p, r):
    s = output_tensor((a.shape[1],), a.dtype)
    q = output_tensor((a.shape[0],), a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            s[j] += r[i] * a[i, j]
            q[i] += a[i, j] * p[j]
    return s, q


def bicg_numpy(a, p, r):
    return r @ a, a @ p


def bicg_data(dtype: Any, m: int, n: int) -> tuple[Any, ...]:
    return spread((n, m), dtype), spread((m,), dtype, which=1), spread((n,), dtype, which=2)


def mvt(a, x1, x2, y1, y2):
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            x1[i] = x1[i] + a[i, j] * y1[j]
    for i in range(n):
        for j in range(n):
            x2[i] = x2[i] + a[j, i] * y2[j]
    return x1, x2


def mvt_numpy(a, x1, x2, y1, y2):
    x1 += a @ y1
    x2 += y2 @ a
    return x1, x2


def mvt_data(dtype: Any, n: int) -> tuple[Any, ...]:
    return spread((n, n), dtype), *(spread((n,), dtype, which=which) for which in range(1, 5))


def gemver(a, u1, v1, u2, v2, y, z, alpha, beta):
    n = a.shape[0]
    x = output_tensor((n,), a.dtype)
    w = output_tensor((n,), a.dtype)
    for i in range(n):
        for j in range(n):
            a[i, j] = a[i, j] + u1[i] * v1[j] + u2[i] * v2[j]
    for i in range(n):
        for j in range(n):
            x[i] = x[i] + beta * a[j, i] * y[j]
    for i in range(n):
        x[i] = x[i] + z[i]
    for i in range(n):
        for j in range(n):
            w[i] = w[i] + alpha * a[i, j] * x[j]
    return a, x, w


def gemver_numpy(a, u1, v1, u2, v2, y, z, alpha, beta):
    a += np.outer(u1, v1)
    a += np.outer(u2, v2)
    x = beta * (y @ a) + z
    return a, x, alpha * (a @ x)


def gemver_data(dtype: Any, n: int) -> tuple[Any, ...]:
    vectors = (spread((n,), dtype, high=0.5, which=which) for which in range(6))
    return spread((n, n), dtype), *vectors, 1.5 / n, 1.2 / n


def gesummv(a, b, x, alpha, beta):
    n = a.shape[0]
    y = output_tensor((n,), a.dtype)
    for i in range(n):
        s = 0.0
        t = 0.0
        for j in range(n):
            s += a[i, j] * x[j]
            t += b[i, j] * x[j]
        y[i] = alpha * s + beta * t
    return y


def gesummv_numpy(a, b, x, alpha, beta):
    return alpha * (a @ x) + beta * (b @ x)


def gesummv_data(dtype: Any, n: int) -> tuple[Any, ...]:
    return spread((n, n), dtype), spread((n, n), dtype, which=1), spread((n,), dtype, which=2), 1.5, 1.2


def program(name: str, kind: Any, kernel: Any, make: Any, numpy: Any, **more: Any) -> Program:
    return Program(name=name, kind=kind, kernel=kernel, make=make, numpy=numpy, **more)


PROGRAMS = (
    program(
        "atax",
        "column reduction",
        atax,
        atax_data,
        atax_numpy,
        small={"m": 6, "n": 7},
        bench={"m": 1900, "n": 2100},
    ),
    program(
        "bicg",
        "column reduction",
        bicg,
        bicg_data,
        bicg_numpy,
        small={"m": 6, "n": 7},
        bench={"m": 1900, "n": 2100},
    ),
    program(
        "mvt",
        "column reduction",
        mvt,
        mvt_data,
        mvt_numpy,
        small={"n": 7},
        bench={"n": 2000},
        updates=(1, 2),
    ),
    program(
        "gemver",
        "column reduction",
        gemver,
        gemver_data,
        gemver_numpy,
        small={"n": 7},
        bench={"n": 2000},
        updates=(0,),
    ),
    program(
        "gesummv",
        "row reduction",
        gesummv,
        gesummv_data,
        gesummv_numpy,
        small={"n": 7},
        bench={"n": 1300},
    ),
)
