"""PolyBench's data mining: columns are variables, rows are points."""
# ruff: noqa: F821 - the language's words are not names of this module

from __future__ import annotations

from typing import Any

import numpy as np

from ..data import spread
from ..table import Program


def covariance(data):
    n = data.shape[0]
    m = data.shape[1]
    mean = allocate((m,), data.dtype)
    centred = allocate((n, m), data.dtype)
    cov = output_tensor((m, m), data.dtype)
    for i in range(n):
        for j in range(m):
            mean[j] += data[i, j]
    for j in range(m):
        mean[j] /= n
    for i in range(n):
        for j in range(m):
            centred[i, j] = data[i, j] - mean[j]
    for i in range(m):
        for j in range(i, m):
            s = 0.0
            for k in range(n):
                s += centred[k, i] * centred[k, j]
            cov[i, j] = s / (n - 1)
            cov[j, i] = cov[i, j]
    return cov


def covariance_numpy(data):
    return np.cov(data, rowvar=False, dtype=data.dtype)


def correlation(data):
    n = data.shape[0]
    m = data.shape[1]
    mean = allocate((m,), data.dtype)
    deviation = allocate((m,), data.dtype)
    scaled = allocate((n, m), data.dtype)
    corr = output_tensor((m, m), data.dtype)
    for j in range(m):
        for i in range(n):
            mean[j] += data[i, j]
        mean[j] /= n
    for j in range(m):
        for i in range(n):
            deviation[j] += (data[i, j] - mean[j]) * (data[i, j] - mean[j])
        variance = deviation[j] / n
        # a column that is nearly constant is not blown up
        deviation[j] = sqrt(n * (1.0 if variance <= 0.01 else variance))
    for i in range(n):
        for j in range(m):
            scaled[i, j] = (data[i, j] - mean[j]) / deviation[j]
    for i in range(m):
        corr[i, i] = 1.0
        for j in range(i + 1, m):
            s = 0.0
            for k in range(n):
                s += scaled[k, i] * scaled[k, j]
            corr[i, j] = s
            corr[j, i] = s
    return corr


def correlation_numpy(data):
    deviation = data.std(axis=0)
    scaled = (data - data.mean(axis=0)) / np.where(deviation <= 0.1, 1, deviation)
    corr = scaled.T @ scaled / len(data)
    np.fill_diagonal(corr, 1)
    return corr


def points(dtype: Any, m: int, n: int) -> tuple[Any, ...]:
    return (spread((n, m), dtype, high=10.0),)


def program(name: str, kernel: Any, numpy: Any) -> Program:
    return Program(
        name=name,
        kind="contraction",
        kernel=kernel,
        make=points,
        numpy=numpy,
        small={"m": 6, "n": 8},
        bench={"m": 1400, "n": 1800},
    )


PROGRAMS = (
    program("covariance", covariance, covariance_numpy),
    program("correlation", correlation, correlation_numpy),
)
