"""PolyBench's factorisations and solvers."""
# ruff: noqa: F821 - the language's words are not names of this module

from __future__ import annotations

from typing import Any

import numpy as np

from ..data import positive_definite, spread
from ..table import Program


def cholesky(a):
    for i in range(a.shape[0]):
        for j in range(i):
            for k in range(j):
                a[i, j] -= a[i, k] * a[j, k]
            a[i, j] /= a[j, j]
        for k in range(i):
            a[i, i] -= a[i, k] * a[i, k]
        a[i, i] = sqrt(a[i, i])
    return a


def cholesky_numpy(a):
    a[:] = np.linalg.cholesky(a) + np.triu(a, 1)
    return a


def definite(dtype: Any, n: int) -> tuple[Any, ...]:
    return (positive_definite(n, dtype),)


def lu(a):
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                a[i, j] -= a[i, k] * a[k, j]
            a[i, j] /= a[j, j]
        for j in range(i, n):
            for k in range(i):
                a[i, j] -= a[i, k] * a[k, j]
    return a


def lu_numpy(a):
    for k in range(len(a) - 1):  # right-looking; the kernel is left-looking
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a


def ludcmp(a, b):
    n = a.shape[0]
    x = output_tensor((n,), a.dtype)
    y = allocate((n,), a.dtype)
    for i in range(n):
        for j in range(i):
            s = a[i, j]
            for k in range(j):
                s -= a[i, k] * a[k, j]
            a[i, j] = s / a[j, j]
        for j in range(i, n):
            t = a[i, j]
            for k in range(i):
                t -= a[i, k] * a[k, j]
            a[i, j] = t
    for i in range(n):
        s = b[i]
        for j in range(i):
            s -= a[i, j] * y[j]
        y[i] = s
    for i in range(n - 1, -1, -1):
        s = y[i]
        for j in range(i + 1, n):
            s -= a[i, j] * x[j]
        x[i] = s / a[i, i]
    return a, x


def ludcmp_numpy(a, b):
    x = np.linalg.solve(a, b)
    return lu_numpy(a), x


def system(dtype: Any, n: int) -> tuple[Any, ...]:
    return positive_definite(n, dtype), spread((n,), dtype, which=1)


def trisolv(lower, b):
    n = lower.shape[0]
    x = output_tensor((n,), b.dtype)
    for i in range(n):
        s = b[i]
        for j in range(i):
            s -= lower[i, j] * x[j]
        x[i] = s / lower[i, i]
    return x


def trisolv_numpy(lower, b):
    return np.linalg.solve(np.tril(lower), b)


def durbin(r):
    """Solve the symmetric Toeplitz system of ones and ``r[:-1]`` for ``-r``."""
    n = r.shape[0]
    y = output_tensor((n,), r.dtype)
    z = allocate((n,), r.dtype)
    y[0] = -r[0]
    beta = 1.0
    alpha = -r[0]
    for k in range(1, n):
        beta = (1 - alpha * alpha) * beta
        s = 0.0
        for i in range(k):
            s += r[k - i - 1] * y[i]
        alpha = -(r[k] + s) / beta
        for i in range(k):
            z[i] = y[i] + alpha * y[k - i - 1]
        for i in range(k):
            y[i] = z[i]
        y[k] = alpha
    return y


def durbin_numpy(r):
    distance = np.abs(np.subtract.outer(np.arange(len(r)), np.arange(len(r))))
    return np.linalg.solve(np.concatenate([np.ones(1, r.dtype), r[:-1]])[distance], -r)


def autocorrelation(dtype: Any, n: int) -> tuple[Any, ...]:
    return ((0.5 ** np.arange(1, n + 1) * np.cos(np.arange(n))).astype(dtype),)


def gramschmidt(a):
    m = a.shape[0]
    n = a.shape[1]
    q = output_tensor((m, n), a.dtype)
    r = output_tensor((n, n), a.dtype)
    for k in range(n):
        norm = 0.0
        for i in range(m):
            norm += a[i, k] * a[i, k]
        r[k, k] = sqrt(norm)
        for i in range(m):
            q[i, k] = a[i, k] / r[k, k]
        for j in range(k + 1, n):
            for i in range(m):
                r[k, j] += q[i, k] * a[i, j]
            for i in range(m):
                a[i, j] -= q[i, k] * r[k, j]
    return a, q, r


def gramschmidt_numpy(a):
    q, r = np.linalg.qr(a)
    sign = np.sign(np.diag(r))
    q, r = q * sign, r * sign[:, None]
    a[:] = q * np.diag(r)
    return a, q, r


def tall(dtype: Any, m: int, n: int) -> tuple[Any, ...]:
    a = spread((m, n), dtype)
    a[np.arange(n), np.arange(n)] += 2
    return (a,)


def program(name: str, kernel: Any, make: Any, numpy: Any, bench: Any, **more: Any) -> Program:
    more = {"kind": "scan", "small": {"n": 8}, **more}
    return Program(name=name, kernel=kernel, make=make, numpy=numpy, bench=bench, **more)


PROGRAMS = (
    program("cholesky", cholesky, definite, cholesky_numpy, {"n": 1000}, updates=(0,)),
    program("lu", lu, definite, lu_numpy, {"n": 1000}, updates=(0,)),
    program("ludcmp", ludcmp, system, ludcmp_numpy, {"n": 1000}, updates=(0,)),
    program("trisolv", trisolv, system, trisolv_numpy, {"n": 2000}),
    program("durbin", durbin, autocorrelation, durbin_numpy, {"n": 2000}),
    program(
        "gramschmidt",
        gramschmidt,
        tall,
        gramschmidt_numpy,
        {"m": 500, "n": 400},
        small={"m": 8, "n": 6},
        updates=(0,),
    ),
)
