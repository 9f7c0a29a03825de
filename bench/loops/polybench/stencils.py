"""PolyBench's stencils over time. Each sweep writes the other array, so that its loops are independent."""

from __future__ import annotations

from typing import Any

from ..data import spread
from ..table import Program


def jacobi_1d(a, b, tsteps):
    n = a.shape[0]
    for _ in range(tsteps):
        for i in range(1, n - 1):
            b[i] = 0.33333 * (a[i - 1] + a[i] + a[i + 1])
        for i in range(1, n - 1):
            a[i] = 0.33333 * (b[i - 1] + b[i] + b[i + 1])
    return a, b


def jacobi_1d_numpy(a, b, tsteps):
    for _ in range(tsteps):
        for old, new in ((a, b), (b, a)):
            new[1:-1] = 0.33333 * (old[:-2] + old[1:-1] + old[2:])
    return a, b


def pair(dims: int) -> Any:
    """Return a maker of two cubes of one side ``n`` with equal borders, and the number of steps."""

    def make(dtype: Any, n: int, tsteps: int) -> tuple[Any, ...]:
        a = spread((n,) * dims, dtype)
        return a, a.copy(), tsteps

    return make


def jacobi_2d(a, b, tsteps):
    n = a.shape[0]
    for _ in range(tsteps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                b[i, j] = 0.2 * (a[i, j] + a[i, j - 1] + a[i, j + 1] + a[i + 1, j] + a[i - 1, j])
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                a[i, j] = 0.2 * (b[i, j] + b[i, j - 1] + b[i, j + 1] + b[i + 1, j] + b[i - 1, j])
    return a, b


def jacobi_2d_numpy(a, b, tsteps):
    for _ in range(tsteps):
        for old, new in ((a, b), (b, a)):
            centre, rows, columns = old[1:-1, 1:-1], old[:, 1:-1], old[1:-1]
            new[1:-1, 1:-1] = 0.2 * (centre + rows[:-2] + rows[2:] + columns[:, :-2] + columns[:, 2:])
    return a, b


def heat_3d(a, b, tsteps):
    n = a.shape[0]
    for _ in range(tsteps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                for k in range(1, n - 1):
                    b[i, j, k] = (
                        0.125 * (a[i + 1, j, k] - 2.0 * a[i, j, k] + a[i - 1, j, k])
                        + 0.125 * (a[i, j + 1, k] - 2.0 * a[i, j, k] + a[i, j - 1, k])
                        + 0.125 * (a[i, j, k + 1] - 2.0 * a[i, j, k] + a[i, j, k - 1])
                        + a[i, j, k]
                    )
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                for k in range(1, n - 1):
                    a[i, j, k] = (
                        0.125 * (b[i + 1, j, k] - 2.0 * b[i, j, k] + b[i - 1, j, k])
                        + 0.125 * (b[i, j + 1, k] - 2.0 * b[i, j, k] + b[i, j - 1, k])
                        + 0.125 * (b[i, j, k + 1] - 2.0 * b[i, j, k] + b[i, j, k - 1])
                        + b[i, j, k]
                    )
    return a, b


def heat_3d_numpy(a, b, tsteps):
    for _ in range(tsteps):
        for old, new in ((a, b), (b, a)):
            x, y, z = old[:, 1:-1, 1:-1], old[1:-1, :, 1:-1], old[1:-1, 1:-1]
            around = x[2:] + x[:-2] + y[:, 2:] + y[:, :-2] + z[..., 2:] + z[..., :-2]
            new[1:-1, 1:-1, 1:-1] = 0.125 * around + 0.25 * z[..., 1:-1]
    return a, b


def fdtd_2d(ex, ey, hz, source):
    nx = hz.shape[0]
    ny = hz.shape[1]
    for t in range(source.shape[0]):
        for j in range(ny):
            ey[0, j] = source[t]
        for i in range(1, nx):
            for j in range(ny):
                ey[i, j] = ey[i, j] - 0.5 * (hz[i, j] - hz[i - 1, j])
        for i in range(nx):
            for j in range(1, ny):
                ex[i, j] = ex[i, j] - 0.5 * (hz[i, j] - hz[i, j - 1])
        for i in range(nx - 1):
            for j in range(ny - 1):
                hz[i, j] = hz[i, j] - 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])
    return ex, ey, hz


def fdtd_2d_numpy(ex, ey, hz, source):
    for value in source:
        ey[0] = value
        ey[1:] -= 0.5 * (hz[1:] - hz[:-1])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return ex, ey, hz


def fields(dtype: Any, tmax: int, nx: int, ny: int) -> tuple[Any, ...]:
    return *(spread((nx, ny), dtype, which=which) for which in range(3)), spread((tmax,), dtype)


def program(name: str, kernel: Any, make: Any, numpy: Any, small: Any, bench: Any) -> Program:
    return Program(
        name=name,
        kind="stencil",
        kernel=kernel,
        make=make,
        numpy=numpy,
        small=small,
        bench=bench,
        updates=(0, 1, 2) if make is fields else (0, 1),
    )


PROGRAMS = (
    program(
        "jacobi-1d",
        jacobi_1d,
        pair(1),
        jacobi_1d_numpy,
        {"n": 9, "tsteps": 3},
        {"n": 2000, "tsteps": 500},
    ),
    program(
        "jacobi-2d",
        jacobi_2d,
        pair(2),
        jacobi_2d_numpy,
        {"n": 7, "tsteps": 3},
        {"n": 1300, "tsteps": 20},
    ),
    program(
        "heat-3d",
        heat_3d,
        pair(3),
        heat_3d_numpy,
        {"n": 6, "tsteps": 2},
        {"n": 120, "tsteps": 20},
    ),
    program(
        "fdtd-2d",
        fdtd_2d,
        fields,
        fdtd_2d_numpy,
        {"tmax": 3, "nx": 6, "ny": 7},
        {"tmax": 20, "nx": 1000, "ny": 1200},
    ),
)
