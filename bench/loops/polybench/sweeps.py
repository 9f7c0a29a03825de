"""PolyBench's sweeps: each point depends on the previous one, in one direction or in all."""
# ruff: noqa: F821 - the language's words are not names of this module

from __future__ import annotations

from typing import Any

import numpy as np

from ..data import spread
from ..table import Program


def seidel_2d(a, tsteps):
    n = a.shape[0]
    for _ in range(tsteps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                above = a[i - 1, j - 1] + a[i - 1, j] + a[i - 1, j + 1]
                level = a[i, j - 1] + a[i, j] + a[i, j + 1]
                below = a[i + 1, j - 1] + a[i + 1, j] + a[i + 1, j + 1]
                a[i, j] = (above + level + below) / 9.0
    return a


def seidel_2d_numpy(a, tsteps):
    n = len(a)
    for _ in range(tsteps):
        for wave in range(3, 3 * (n - 2) + 1):  # the points with 2 i + j = wave are independent
            i = np.arange(max(1, -((n - 2 - wave) // 2)), min(n - 2, (wave - 1) // 2) + 1)
            j = wave - 2 * i
            a[i, j] = sum(a[i + x, j + y] for x in (-1, 0, 1) for y in (-1, 0, 1)) / 9
    return a


def square(dtype: Any, n: int, tsteps: int) -> tuple[Any, ...]:
    return spread((n, n), dtype), tsteps


def adi(u, tsteps):
    """Solve the heat equation by alternating tridiagonal sweeps, columns then rows."""
    n = u.shape[0]
    v = allocate((n, n), u.dtype)
    p = allocate((n, n), u.dtype)
    q = allocate((n, n), u.dtype)
    mul1 = 2.0 * n * n / tsteps
    mul2 = 1.0 * n * n / tsteps
    a = -mul1 / 2.0
    b = 1.0 + mul1
    d = -mul2 / 2.0
    e = 1.0 + mul2
    for _ in range(tsteps):
        for i in range(1, n - 1):
            v[0, i] = 1.0
            p[i, 0] = 0.0
            q[i, 0] = v[0, i]
            for j in range(1, n - 1):
                p[i, j] = -a / (a * p[i, j - 1] + b)
                q[i, j] = (
                    -d * u[j, i - 1] + (1.0 + 2.0 * d) * u[j, i] - d * u[j, i + 1] - a * q[i, j - 1]
                ) / (a * p[i, j - 1] + b)
            v[n - 1, i] = 1.0
            for j in range(n - 2, 0, -1):
                v[j, i] = p[i, j] * v[j + 1, i] + q[i, j]
        for i in range(1, n - 1):
            u[i, 0] = 1.0
            p[i, 0] = 0.0
            q[i, 0] = u[i, 0]
            for j in range(1, n - 1):
                p[i, j] = -d / (d * p[i, j - 1] + e)
                q[i, j] = (
                    -a * v[i - 1, j] + (1.0 + 2.0 * a) * v[i, j] - a * v[i + 1, j] - d * q[i, j - 1]
                ) / (d * p[i, j - 1] + e)
            u[i, n - 1] = 1.0
            for j in range(n - 2, 0, -1):
                u[i, j] = p[i, j] * u[i, j + 1] + q[i, j]
    return u


def tridiagonal(n: int, diagonal: float, beside: float) -> Any:
    return diagonal * np.eye(n) + beside * (np.eye(n, k=1) + np.eye(n, k=-1))


def half_step(old: Any, implicit: float, explicit: float) -> Any:
    """Return the inner points of the next array: implicit down the columns, explicit along the rows."""
    right = (1 - 2 * explicit) * old[:, 1:-1] + explicit * (old[:, :-2] + old[:, 2:])
    right = right[1:-1].copy()
    right[[0, -1]] += implicit  # the borders are ones
    return np.linalg.solve(tridiagonal(len(right), 1 + 2 * implicit, -implicit), right)


def adi_numpy(u, tsteps):
    n = len(u)
    first, second = n * n / tsteps, n * n / tsteps / 2
    # the border columns of the first half step are read by the second, and stay zero
    v = np.zeros_like(u)
    v[[0, -1], 1:-1] = 1
    for _ in range(tsteps):
        v[1:-1, 1:-1] = half_step(u, first, second)
        u[1:-1, [0, -1]] = 1
        u[1:-1, 1:-1] = half_step(v.T, second, first).T
    return u


def program(name: str, kernel: Any, numpy: Any, small: Any, bench: Any) -> Program:
    return Program(
        name=name,
        kind="scan",
        kernel=kernel,
        make=square,
        numpy=numpy,
        small=small,
        bench=bench,
        updates=(0,),
    )


PROGRAMS = (
    program("seidel-2d", seidel_2d, seidel_2d_numpy, {"n": 8, "tsteps": 3}, {"n": 400, "tsteps": 20}),
    program("adi", adi, adi_numpy, {"n": 7, "tsteps": 3}, {"n": 400, "tsteps": 20}),
)
