"""Stencils: PolyBench's over time, and horizontal diffusion of a weather model."""
# ruff: noqa: F821 - the language's words are not names of this module

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..data import spread
from ..peers import prange
from ..table import Bound, Row, TorchPeer, whole
from .dense import like


def stepped(step: Callable[..., None]) -> TorchPeer:
    """Return the peer that compiles one step from one array to another, and alternates between the two.

    Compiled in one piece, the steps would be unrolled.
    """

    def peer(compiler: Callable[..., Any]) -> Callable[..., Any]:
        compiled = compiler(step)

        def run(a: Any, b: Any, tsteps: int) -> tuple[Any, Any]:
            for _ in range(tsteps):
                compiled(a, b)
                compiled(b, a)
            return a, b

        return run

    return peer


def jacobi_2d_numba(a, b, tsteps):
    n = a.shape[0]
    fifth = a.dtype.type(0.2)
    for _ in range(tsteps):
        for i in prange(1, n - 1):
            for j in range(1, n - 1):
                b[i, j] = fifth * (a[i, j] + a[i, j - 1] + a[i, j + 1] + a[i + 1, j] + a[i - 1, j])
        for i in prange(1, n - 1):
            for j in range(1, n - 1):
                a[i, j] = fifth * (b[i, j] + b[i, j - 1] + b[i, j + 1] + b[i + 1, j] + b[i - 1, j])


def jacobi_2d_torch(old, new):
    rows, columns = old[:, 1:-1], old[1:-1]
    around = rows[:-2] + rows[2:] + columns[:, :-2] + columns[:, 2:]
    new[1:-1, 1:-1] = 0.2 * (old[1:-1, 1:-1] + around)


def heat_3d_numba(a, b, tsteps):
    n = a.shape[0]
    eighth, quarter = a.dtype.type(0.125), a.dtype.type(0.25)
    for step in range(2 * tsteps):
        old, new = (a, b) if step % 2 == 0 else (b, a)
        for i in prange(1, n - 1):
            for j in range(1, n - 1):
                for k in range(1, n - 1):
                    new[i, j, k] = quarter * old[i, j, k] + eighth * (
                        (old[i + 1, j, k] + old[i - 1, j, k])
                        + (old[i, j + 1, k] + old[i, j - 1, k])
                        + (old[i, j, k + 1] + old[i, j, k - 1])
                    )


def heat_3d_torch(old, new):
    x, y, z = old[:, 1:-1, 1:-1], old[1:-1, :, 1:-1], old[1:-1, 1:-1]
    around = x[2:] + x[:-2] + y[:, 2:] + y[:, :-2] + z[..., 2:] + z[..., :-2]
    new[1:-1, 1:-1, 1:-1] = 0.125 * around + 0.25 * z[..., 1:-1]


def fdtd_2d_numba(ex, ey, hz, source):
    nx, ny = hz.shape
    electric, magnetic = hz.dtype.type(0.5), hz.dtype.type(0.7)
    for t in range(len(source)):
        for i in prange(nx):
            if i == 0:
                for j in range(ny):
                    ey[0, j] = source[t]
            else:
                for j in range(ny):
                    ey[i, j] -= electric * (hz[i, j] - hz[i - 1, j])
            for j in range(1, ny):
                ex[i, j] -= electric * (hz[i, j] - hz[i, j - 1])
        for i in prange(nx - 1):
            for j in range(ny - 1):
                hz[i, j] -= magnetic * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])


def fdtd_2d_step(ex, ey, hz, value):
    ey[0] = value
    ey[1:] -= 0.5 * (hz[1:] - hz[:-1])
    ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
    hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


def fdtd_2d_torch(compiler: Callable[..., Any]) -> Callable[..., Any]:
    step = compiler(fdtd_2d_step)

    def run(ex: Any, ey: Any, hz: Any, source: Any) -> tuple[Any, Any, Any]:
        for value in source:
            step(ex, ey, hz, value)
        return ex, ey, hz

    return run


def hdiff(field, coefficient):  # noqa: C901 - loop nests in a row
    """Diffuse a field that has a halo of two points along its first two axes, with limited fluxes."""
    ni = coefficient.shape[0]
    nj = coefficient.shape[1]
    nk = coefficient.shape[2]
    lap = allocate((ni + 2, nj + 2, nk), field.dtype)
    flx = allocate((ni + 1, nj, nk), field.dtype)
    fly = allocate((ni, nj + 1, nk), field.dtype)
    out = output_tensor((ni, nj, nk), field.dtype)
    for i in range(ni + 2):
        for j in range(nj + 2):
            for k in range(nk):
                lap[i, j, k] = 4.0 * field[i + 1, j + 1, k] - (
                    field[i + 2, j + 1, k] + field[i, j + 1, k] + field[i + 1, j + 2, k] + field[i + 1, j, k]
                )
    for i in range(ni + 1):
        for j in range(nj):
            for k in range(nk):
                across = lap[i + 1, j + 1, k] - lap[i, j + 1, k]
                slope = field[i + 2, j + 2, k] - field[i + 1, j + 2, k]
                flx[i, j, k] = 0.0 if across * slope > 0.0 else across
    for i in range(ni):
        for j in range(nj + 1):
            for k in range(nk):
                along = lap[i + 1, j + 1, k] - lap[i + 1, j, k]
                slope = field[i + 2, j + 2, k] - field[i + 2, j + 1, k]
                fly[i, j, k] = 0.0 if along * slope > 0.0 else along
    for i in range(ni):
        for j in range(nj):
            for k in range(nk):
                out[i, j, k] = field[i + 2, j + 2, k] - coefficient[i, j, k] * (
                    flx[i + 1, j, k] - flx[i, j, k] + fly[i, j + 1, k] - fly[i, j, k]
                )
    return out


def hdiff_numpy(field, coefficient):
    inner = field[1:-1, 1:-1]
    lap = 4 * inner - field[2:, 1:-1] - field[:-2, 1:-1] - field[1:-1, 2:] - field[1:-1, :-2]
    flux = np.zeros_like(coefficient)
    for axis, trim in ((0, np.s_[:, 1:-1]), (1, np.s_[1:-1])):
        step = np.diff(lap[trim], axis=axis)
        step[step * np.diff(inner[trim], axis=axis) > 0] = 0
        flux += np.diff(step, axis=axis)
    return field[2:-2, 2:-2] - coefficient * flux


def hdiff_numba(field, coefficient, out):
    ni, nj, nk = coefficient.shape
    four, zero = field.dtype.type(4), field.dtype.type(0)
    for i in prange(ni):
        lap = np.empty((3, nj + 2, nk), field.dtype)
        for r in range(3):
            for j in range(nj + 2):
                for k in range(nk):
                    lap[r, j, k] = four * field[i + r + 1, j + 1, k] - (
                        field[i + r + 2, j + 1, k]
                        + field[i + r, j + 1, k]
                        + field[i + r + 1, j + 2, k]
                        + field[i + r + 1, j, k]
                    )
        for j in range(nj):
            for k in range(nk):
                here, middle = field[i + 2, j + 2, k], lap[1, j + 1, k]
                east, west = lap[2, j + 1, k] - middle, middle - lap[0, j + 1, k]
                north, south = lap[1, j + 2, k] - middle, middle - lap[1, j, k]
                east = zero if east * (field[i + 3, j + 2, k] - here) > zero else east
                west = zero if west * (here - field[i + 1, j + 2, k]) > zero else west
                north = zero if north * (field[i + 2, j + 3, k] - here) > zero else north
                south = zero if south * (here - field[i + 2, j + 1, k]) > zero else south
                out[i, j, k] = here - coefficient[i, j, k] * (east - west + north - south)


def hdiff_torch(field, coefficient):
    inner = field[1:-1, 1:-1]
    lap = 4 * inner - field[2:, 1:-1] - field[:-2, 1:-1] - field[1:-1, 2:] - field[1:-1, :-2]
    across, along = lap[:, 1:-1].diff(dim=0), lap[1:-1].diff(dim=1)
    flx = across.where(across * inner[:, 1:-1].diff(dim=0) <= 0, 0)
    fly = along.where(along * inner[1:-1].diff(dim=1) <= 0, 0)
    return field[2:-2, 2:-2] - coefficient * (flx.diff(dim=0) + fly.diff(dim=1))


def with_halo(dtype: Any, ni: int, nj: int, nk: int) -> tuple[Any, ...]:
    return spread((ni + 4, nj + 4, nk), dtype), spread((ni, nj, nk), dtype, which=1)


ROWS = (
    like(
        "jacobi_2d",
        "jacobi-2d",
        numba=jacobi_2d_numba,
        torch=stepped(jacobi_2d_torch),
        bounds=(Bound("bytes", lambda size, n, tsteps: 4 * tsteps * size * n * n, "l3"),),
        bench={"n": 350, "tsteps": 79},
    ),
    like(
        "heat_3d",
        "heat-3d",
        numba=heat_3d_numba,
        torch=stepped(heat_3d_torch),
        bounds=(Bound("flops", lambda size, n, tsteps: 30 * tsteps * (n - 2) ** 3),),
        bench={"n": 40, "tsteps": 49},
    ),
    like(
        "fdtd_2d",
        "fdtd-2d",
        numba=fdtd_2d_numba,
        torch=fdtd_2d_torch,
        # each field read and written once a step, when the statements are fused
        bounds=(Bound("bytes", lambda size, tmax, nx, ny: 6 * tmax * size * nx * ny, "l3"),),
        bench={"tmax": 60, "nx": 400, "ny": 450},
    ),
    Row(
        name="hdiff",
        kind="stencil",
        kernel=hdiff,
        make=with_halo,
        numpy=hdiff_numpy,
        numba=hdiff_numba,
        torch=whole(hdiff_torch),
        bounds=(Bound("bytes", lambda size, ni, nj, nk: size * nk * ((ni + 4) * (nj + 4) + 2 * ni * nj)),),
        small={"ni": 4, "nj": 5, "nk": 6},
        bench={"ni": 128, "nj": 128, "nk": 160},
    ),
)
