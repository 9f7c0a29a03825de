"""A scan: vertical advection of a weather model, a tridiagonal system in each column of air."""
# ruff: noqa: F821 - the language's words are not names of this module

from __future__ import annotations

from typing import Any

import numpy as np

from ..data import spread
from ..peers import part, prange
from ..table import Bound, Row

AT_ONCE = 8  # columns whose recurrences the Numba peer runs side by side


def vadv(tendency, u, wind, position, forcing, rate):
    """Advance ``tendency``: implicit in the vertical, by elimination up and substitution down."""
    ni = u.shape[0]
    nj = u.shape[1]
    nk = u.shape[2]
    ccol = allocate((ni, nj, nk), u.dtype)
    dcol = allocate((ni, nj, nk), u.dtype)
    for i in range(ni):
        for j in range(nj):
            first = 0.125 * (wind[i + 1, j, 1] + wind[i, j, 1])
            right = rate * position[i, j, 0] + forcing[i, j, 0] + tendency[i, j, 0]
            ccol[i, j, 0] = first / (rate - first)
            dcol[i, j, 0] = (right - first * (u[i, j, 1] - u[i, j, 0])) / (rate - first)
            for k in range(1, nk - 1):
                low = -0.125 * (wind[i + 1, j, k] + wind[i, j, k])
                high = 0.125 * (wind[i + 1, j, k + 1] + wind[i, j, k + 1])
                drift = low * (u[i, j, k - 1] - u[i, j, k]) + high * (u[i, j, k + 1] - u[i, j, k])
                value = rate * position[i, j, k] + forcing[i, j, k] + tendency[i, j, k] - drift
                scale = 1.0 / (rate - low - high - ccol[i, j, k - 1] * low)
                ccol[i, j, k] = high * scale
                dcol[i, j, k] = (value - dcol[i, j, k - 1] * low) * scale
            last = -0.125 * (wind[i + 1, j, nk - 1] + wind[i, j, nk - 1])
            top = rate * position[i, j, nk - 1] + forcing[i, j, nk - 1] + tendency[i, j, nk - 1]
            top = top - last * (u[i, j, nk - 2] - u[i, j, nk - 1])
            state = (top - dcol[i, j, nk - 2] * last) / (rate - last - ccol[i, j, nk - 2] * last)
            tendency[i, j, nk - 1] = rate * (state - position[i, j, nk - 1])
            for k in range(nk - 2, -1, -1):
                state = dcol[i, j, k] - ccol[i, j, k] * state
                tendency[i, j, k] = rate * (state - position[i, j, k])
    return tendency


def vadv_numpy(tendency, u, wind, position, forcing, rate):
    side = 0.125 * (wind[1:] + wind[:-1])
    # the faces below and above each point; there is none under the first and over the last
    low, high = -side, np.zeros_like(side)
    low[..., 0] = 0
    high[..., :-1] = side[..., 1:]
    value = rate * position + forcing + tendency
    step = np.diff(u, axis=-1)
    value[..., 1:] += low[..., 1:] * step
    value[..., :-1] -= high[..., :-1] * step
    diagonal = rate - low - high
    for k in range(1, u.shape[2]):
        factor = low[..., k] / diagonal[..., k - 1]
        diagonal[..., k] -= factor * high[..., k - 1]
        value[..., k] -= factor * value[..., k - 1]
    value[..., -1] /= diagonal[..., -1]
    for k in range(u.shape[2] - 2, -1, -1):
        value[..., k] = (value[..., k] - high[..., k] * value[..., k + 1]) / diagonal[..., k]
    tendency[:] = rate * (value - position)
    return tendency


def vadv_numba(tendency, u, wind, position, forcing, rate):
    ni, nj, nk = u.shape
    eighth = u.dtype.type(0.125)
    groups = -(-nj // AT_ONCE)
    for group in prange(ni * groups):
        i, begin = group // groups, group % groups * AT_ONCE
        side = min(AT_ONCE, nj - begin)
        # face k is below point k; there is none under the first point and over the last
        face = np.zeros((AT_ONCE, nk + 1), u.dtype)
        value = np.zeros((AT_ONCE, nk), u.dtype)
        flow = np.zeros(nk + 1, u.dtype)
        for lane in range(side):
            j = begin + lane
            for k in range(1, nk):
                face[lane, k] = eighth * (wind[i + 1, j, k] + wind[i, j, k])
                flow[k] = face[lane, k] * (u[i, j, k] - u[i, j, k - 1])
            for k in range(nk):
                drift = flow[k] + flow[k + 1]
                value[lane, k] = rate * position[i, j, k] + forcing[i, j, k] + tendency[i, j, k] - drift
        eliminate(face, value, rate)
        for lane in range(side):
            j = begin + lane
            for k in range(nk):
                tendency[i, j, k] = rate * (value[lane, k] - position[i, j, k])


@part
def eliminate(face, value, rate):
    """Solve the tridiagonal systems in place, all at once: a single recurrence waits for its divisions."""
    nk = value.shape[1]
    factor = np.zeros(AT_ONCE, value.dtype)
    for k in range(nk):
        for lane in range(AT_ONCE):
            low, high = -face[lane, k], face[lane, k + 1]
            scale = 1 / (rate - low - high - factor[lane] * low)
            if k > 0:
                value[lane, k] -= value[lane, k - 1] * low
            value[lane, k] *= scale
            factor[lane] = high * scale
            face[lane, k] = factor[lane]
    for k in range(nk - 2, -1, -1):
        for lane in range(AT_ONCE):
            value[lane, k] -= face[lane, k] * value[lane, k + 1]


def columns(dtype: Any, ni: int, nj: int, nk: int) -> tuple[Any, ...]:
    shape = (ni, nj, nk)
    return (
        spread(shape, dtype),
        spread(shape, dtype, which=1),
        spread((ni + 1, nj, nk), dtype, which=2),
        spread(shape, dtype, which=3),
        spread(shape, dtype, which=4),
        1.15,
    )


ROWS = (
    Row(
        name="vadv",
        kind="scan",
        kernel=vadv,
        make=columns,
        numpy=vadv_numpy,
        numba=vadv_numba,
        torch="a recurrence along the last axis: torch.compile unrolls its 160 steps",
        bounds=(Bound("bytes", lambda size, ni, nj, nk: size * nj * nk * (6 * ni + 1)),),
        small={"ni": 3, "nj": 5, "nk": 6},
        bench={"ni": 112, "nj": 112, "nk": 80},
        updates=(0,),
    ),
)
