"""PolyBench's products of matrices. Matrices are lower-case; ``c`` is updated as PolyBench does."""
# ruff: noqa: F821 - the language's words are not names of this module

from __future__ import annotations

from typing import Any

import numpy as np

from ..data import spread
from ..table import Program


def gemm(a, b, c, alpha, beta):
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            c[i, j] = beta * c[i, j] + alpha * s
    return c


def gemm_numpy(a, b, c, alpha, beta):
    c *= beta
    c += alpha * (a @ b)
    return c


def gemm_data(dtype: Any, ni: int, nj: int, nk: int) -> tuple[Any, ...]:
    return spread((ni, nk), dtype), spread((nk, nj), dtype, which=1), spread((ni, nj), dtype), 1.5, 0.7


def k2mm(a, b, c, d, alpha, beta):
    ni = a.shape[0]
    nj = b.shape[1]
    nl = c.shape[1]
    tmp = allocate((ni, nj), a.dtype)
    for i in range(ni):
        for j in range(nj):
            for k in range(a.shape[1]):
                tmp[i, j] += alpha * a[i, k] * b[k, j]
    for i in range(ni):
        for j in range(nl):
            d[i, j] *= beta
            for k in range(nj):
                d[i, j] += tmp[i, k] * c[k, j]
    return d


def k2mm_numpy(a, b, c, d, alpha, beta):
    d[:] = beta * d + alpha * np.linalg.multi_dot([a, b, c])
    return d


def k2mm_data(dtype: Any, ni: int, nj: int, nk: int, nl: int) -> tuple[Any, ...]:
    return (
        spread((ni, nk), dtype),
        spread((nk, nj), dtype, which=1),
        spread((nj, nl), dtype, which=2),
        spread((ni, nl), dtype, which=3),
        1.5,
        0.7,
    )


def k3mm(a, b, c, d):
    e = allocate((a.shape[0], b.shape[1]), a.dtype)
    f = allocate((c.shape[0], d.shape[1]), a.dtype)
    g = output_tensor((a.shape[0], d.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                e[i, j] += a[i, k] * b[k, j]
    for i in range(c.shape[0]):
        for j in range(d.shape[1]):
            for k in range(c.shape[1]):
                f[i, j] += c[i, k] * d[k, j]
    for i in range(a.shape[0]):
        for j in range(d.shape[1]):
            for k in range(b.shape[1]):
                g[i, j] += e[i, k] * f[k, j]
    return g


def k3mm_numpy(a, b, c, d):
    return (a @ b) @ (c @ d)


def k3mm_data(dtype: Any, ni: int, nj: int, nk: int, nl: int, nm: int) -> tuple[Any, ...]:
    shapes = (ni, nk), (nk, nj), (nj, nm), (nm, nl)
    return tuple(spread(shape, dtype, which=which) for which, shape in enumerate(shapes))


def syrk(a, c, alpha, beta):
    for i in range(a.shape[0]):
        for j in range(i + 1):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * a[j, k]
            c[i, j] = beta * c[i, j] + alpha * s
    return c


def syrk_numpy(a, c, alpha, beta):
    for i in range(len(a)):
        c[i, : i + 1] *= beta
        c[i, : i + 1] += alpha * (a[: i + 1] @ a[i])
    return c


def syrk_data(dtype: Any, m: int, n: int) -> tuple[Any, ...]:
    return spread((n, m), dtype), spread((n, n), dtype, which=1), 1.5, 0.7


def syr2k(a, b, c, alpha, beta):
    n = a.shape[0]
    for i in range(n):
        for j in range(i + 1):
            c[i, j] *= beta
        for k in range(a.shape[1]):
            for j in range(i + 1):
                c[i, j] += a[j, k] * alpha * b[i, k] + b[j, k] * alpha * a[i, k]
    return c


def syr2k_numpy(a, b, c, alpha, beta):
    product = a @ b.T
    full = beta * c + alpha * (product + product.T)
    lower = np.tril_indices_from(c)
    c[lower] = full[lower]
    return c


def syr2k_data(dtype: Any, m: int, n: int) -> tuple[Any, ...]:
    a, b = spread((n, m), dtype), spread((n, m), dtype, which=1)
    return a, b, spread((n, n), dtype, which=2), 1.5, 0.7


def symm(a, b, c, alpha, beta):
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            above = 0.0
            for k in range(i):
                c[k, j] += alpha * b[i, j] * a[i, k]
                above += b[k, j] * a[i, k]
            c[i, j] = beta * c[i, j] + alpha * b[i, j] * a[i, i] + alpha * above
    return c


def symm_numpy(a, b, c, alpha, beta):
    lower = np.tril(a)
    full = lower + np.tril(a, -1).T
    c *= beta
    c += alpha * (full @ b)
    return c


def symm_data(dtype: Any, m: int, n: int) -> tuple[Any, ...]:
    a, b = spread((m, m), dtype), spread((m, n), dtype, which=1)
    return a, b, spread((m, n), dtype, which=2), 1.5, 0.7


def trmm(a, b, alpha):
    m = b.shape[0]
    for i in range(m):
        for j in range(b.shape[1]):
            for k in range(i + 1, m):
                b[i, j] += a[k, i] * b[k, j]
            b[i, j] = alpha * b[i, j]
    return b


def trmm_numpy(a, b, alpha):
    unit_lower = np.tril(a, -1) + np.eye(len(a), dtype=a.dtype)
    b[:] = alpha * (unit_lower.T @ b)
    return b


def trmm_data(dtype: Any, m: int, n: int) -> tuple[Any, ...]:
    return spread((m, m), dtype, high=1.0 / m), spread((m, n), dtype, which=1), 0.8


def doitgen(a, c4):
    nr = a.shape[0]
    nq = a.shape[1]
    np_ = a.shape[2]
    out = output_tensor(a.shape, a.dtype)
    for r in range(nr):
        for q in range(nq):
            for p in range(np_):
                s = 0.0
                for k in range(np_):
                    s += a[r, q, k] * c4[k, p]
                out[r, q, p] = s
    return out


def doitgen_numpy(a, c4):
    return (a.reshape(-1, len(c4)) @ c4).reshape(a.shape)


def doitgen_data(dtype: Any, nr: int, nq: int, np: int) -> tuple[Any, ...]:
    return spread((nr, nq, np), dtype), spread((np, np), dtype, which=1)


def program(name: str, kernel: Any, make: Any, numpy: Any, small: Any, bench: Any, **more: Any) -> Program:
    return Program(
        name=name,
        kind="contraction",
        kernel=kernel,
        make=make,
        numpy=numpy,
        small=small,
        bench=bench,
        **more,
    )


SQUARE = {"m": 1000, "n": 1200}
PROGRAMS = (
    program(
        "gemm",
        gemm,
        gemm_data,
        gemm_numpy,
        {"ni": 5, "nj": 6, "nk": 7},
        {"ni": 1000, "nj": 1100, "nk": 1200},
        updates=(2,),
    ),
    program(
        "2mm",
        k2mm,
        k2mm_data,
        k2mm_numpy,
        {"ni": 4, "nj": 5, "nk": 6, "nl": 7},
        {"ni": 800, "nj": 900, "nk": 1100, "nl": 1200},
        updates=(3,),
    ),
    program(
        "3mm",
        k3mm,
        k3mm_data,
        k3mm_numpy,
        {"ni": 4, "nj": 5, "nk": 6, "nl": 7, "nm": 8},
        {"ni": 800, "nj": 900, "nk": 1000, "nl": 1100, "nm": 1200},
    ),
    program("syrk", syrk, syrk_data, syrk_numpy, {"m": 5, "n": 7}, SQUARE, updates=(1,)),
    program("syr2k", syr2k, syr2k_data, syr2k_numpy, {"m": 5, "n": 7}, SQUARE, updates=(2,)),
    program("symm", symm, symm_data, symm_numpy, {"m": 6, "n": 7}, SQUARE, updates=(2,)),
    program("trmm", trmm, trmm_data, trmm_numpy, {"m": 6, "n": 7}, SQUARE, updates=(1,)),
    program(
        "doitgen",
        doitgen,
        doitgen_data,
        doitgen_numpy,
        {"nr": 3, "nq": 4, "np": 5},
        {"nr": 110, "nq": 125, "np": 256},
    ),
)
