"""Elementwise kernels: transcendental functions, chains, a gather of rows."""
# ruff: noqa: F821 - the language's words are not names of this module

from __future__ import annotations

from typing import Any

import numpy as np

from ..data import spread
from ..peers import angle_float64, exp_float32, prange, sin_float64
from ..table import Bound, Row, whole

RIGHT = np.pi / 2  # a cosine is a sine from here


def arc_distance(theta_1, phi_1, theta_2, phi_2):
    d = output_tensor(theta_1.shape, theta_1.dtype)
    for i in range(theta_1.shape[0]):
        up = sin((theta_2[i] - theta_1[i]) / 2)
        along = sin((phi_2[i] - phi_1[i]) / 2)
        chord = up * up + cos(theta_1[i]) * cos(theta_2[i]) * along * along
        d[i] = 2 * atan2(sqrt(chord), sqrt(1 - chord))
    return d


def arc_distance_numpy(theta_1, phi_1, theta_2, phi_2):
    chord = np.sin((theta_2 - theta_1) / 2) ** 2
    chord += np.cos(theta_1) * np.cos(theta_2) * np.sin((phi_2 - phi_1) / 2) ** 2
    return 2 * np.arctan2(np.sqrt(chord), np.sqrt(1 - chord))


def arc_distance_numba(theta_1, phi_1, theta_2, phi_2, d):
    for i in prange(len(theta_1)):
        up = sin_float64((theta_2[i] - theta_1[i]) / 2)
        along = sin_float64((phi_2[i] - phi_1[i]) / 2)
        both = sin_float64(theta_1[i] + RIGHT) * sin_float64(theta_2[i] + RIGHT)
        chord = up * up + both * along * along
        d[i] = 2 * angle_float64(np.sqrt(chord), np.sqrt(1 - chord))


def arc_distance_torch(theta_1, phi_1, theta_2, phi_2):
    chord = ((theta_2 - theta_1) / 2).sin() ** 2
    chord = chord + theta_1.cos() * theta_2.cos() * ((phi_2 - phi_1) / 2).sin() ** 2
    return 2 * chord.sqrt().atan2((1 - chord).sqrt())


def angles(dtype: Any, n: int) -> tuple[Any, ...]:
    return tuple(spread((n,), dtype, -1.5, 1.5, which=which) for which in range(4))


def chain(x, y, scale):
    """Scale, add, clip, square with the sign kept; memory alone limits it."""
    z = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            t = min(max(scale * x[i, j] + y[i, j], -1.0), 1.0)
            z[i, j] = t * abs(t) + 0.5 * x[i, j]
    return z


def chain_numpy(x, y, scale):
    t = np.clip(scale * x + y, -1, 1)
    return t * np.abs(t) + x / 2


def chain_numba(x, y, scale, z):
    factor, one, half = x.dtype.type(scale), x.dtype.type(1), x.dtype.type(0.5)
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            t = min(max(factor * x[i, j] + y[i, j], -one), one)
            z[i, j] = t * abs(t) + half * x[i, j]


def chain_torch(x, y, scale):
    t = (scale * x + y).clamp(-1, 1)
    return t * t.abs() + x / 2


def two_matrices(dtype: Any, rows: int, columns: int) -> tuple[Any, ...]:
    shape = (rows, columns)
    return spread(shape, dtype, -1.0, 1.0), spread(shape, dtype, -1.0, 1.0, which=1), 1.25


def bias_gelu(x, bias, residual):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            t = x[i, j] + bias[j]
            bent = tanh(0.7978845608028654 * (t + 0.044715 * t * t * t))
            y[i, j] = residual[i, j] + 0.5 * t * (1.0 + bent)
    return y


def bias_gelu_numpy(x, bias, residual):
    t = x + bias
    return residual + t / 2 * (1 + np.tanh((2 / np.pi) ** 0.5 * (t + 0.044715 * t**3)))


def bias_gelu_numba(x, bias, residual, y):
    real = x.dtype.type
    two, one, cubic = real(1.5957691216057308), real(1), real(0.044715)
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            t = x[i, j] + bias[j]
            # tanh by one exponential, as half of (1 + tanh u) is 1 / (1 + exp(-2 u))
            y[i, j] = residual[i, j] + t / (one + exp_float32(-two * (t + cubic * t * t * t)))


def bias_gelu_torch(x, bias, residual):
    from torch.nn.functional import gelu

    return residual + gelu(x + bias, approximate="tanh")


def activations(dtype: Any, rows: int, columns: int) -> tuple[Any, ...]:
    shape = (rows, columns)
    return spread(shape, dtype, -3, 3), spread((columns,), dtype, -1, 1, which=1), spread(shape, dtype)


def gather(x, index):
    y = output_tensor((index.shape[0], x.shape[1]), x.dtype)
    for i in range(index.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[index[i], j]
    return y


def gather_numpy(x, index):
    return np.take(x, index, axis=0)


def gather_numba(x, index, y):
    for i in prange(len(index)):
        for j in range(x.shape[1]):
            y[i, j] = x[index[i], j]


def gather_torch(x, index):
    return x[index]


def table(dtype: Any, rows: int, columns: int, picked: int) -> tuple[Any, ...]:
    index = (spread((picked,), "float64") * rows).astype(np.int32)
    return spread((rows, columns), dtype), index


def program(name: str, **more: Any) -> Row:
    return Row(name=name, kind="elementwise", **more)


ROWS = (
    program(
        "arc_distance",
        kernel=arc_distance,
        make=angles,
        numpy=arc_distance_numpy,
        numba=arc_distance_numba,
        torch=whole(arc_distance_torch),
        bounds=(
            Bound("bytes", lambda size, n: 5 * size * n),
            Bound("calls", lambda size, n: 5 * n),
        ),
        small={"n": 17},
        bench={"n": 1_000_000},
    ),
    program(
        "chain",
        kernel=chain,
        make=two_matrices,
        numpy=chain_numpy,
        numba=chain_numba,
        torch=whole(chain_torch),
        bounds=(Bound("bytes", lambda size, rows, columns: 3 * size * rows * columns),),
        small={"rows": 4, "columns": 9},
        bench={"rows": 8192, "columns": 2048},
        dtype="float32",
    ),
    program(
        "bias_gelu",
        kernel=bias_gelu,
        make=activations,
        numpy=bias_gelu_numpy,
        numba=bias_gelu_numba,
        torch=whole(bias_gelu_torch),
        bounds=(
            Bound("bytes", lambda size, rows, columns: 3 * size * rows * columns),
            Bound("calls", lambda size, rows, columns: rows * columns),
        ),
        small={"rows": 4, "columns": 9},
        bench={"rows": 8192, "columns": 2048},
        dtype="float32",
    ),
    program(
        "gather",
        kernel=gather,
        make=table,
        numpy=gather_numpy,
        numba=gather_numba,
        torch=whole(gather_torch),
        bounds=(Bound("bytes", lambda size, rows, columns, picked: picked * (2 * size * columns + 4)),),
        small={"rows": 5, "columns": 3, "picked": 8},
        bench={"rows": 100_000, "columns": 256, "picked": 65536},
        dtype="float32",
    ),
)
