"""Operators of three kinds of kernel, which dask's workers and other processes import by name."""

# ruff: noqa: F821 - the words of loop kernels

import os
import pathlib
import time

import numpy as np

import polyop

SOURCES = pathlib.Path(__file__).parents[1] / "sources"


@polyop.kernel
def smooth(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i]
    for i in range(1, x.shape[0] - 1):
        y[i] = 0.25 * x[i - 1] + 0.5 * x[i] + 0.25 * x[i + 1]
    return y


smooth = polyop.operator("chunked::smooth(Tensor x) -> Tensor", smooth)

square = polyop.operator(
    "chunked::square(Tensor x) -> Tensor",
    polyop.source(SOURCES / "kernels.c", function="square"),
    dims="... -> ...",
    parallel="...",
    dtypes=["float32"],
)

column_sums = polyop.operator(
    "chunked::column_sums(Tensor x) -> Tensor",
    lambda x: x.sum(0),
    dims="m n -> n",
    parallel="n",
    sum="m",
)


def _slow_sums(x):
    """Leave a file for each call; then take a while."""
    folder = pathlib.Path(os.environ["CHUNKED_CALLS"])
    (folder / f"{os.getpid()}-{time.monotonic_ns()}").touch()
    time.sleep(0.2)
    return x.sum(0)


slow_sums = polyop.operator(
    "chunked::slow_sums(Tensor x) -> Tensor", _slow_sums, dims="m n -> n", parallel="n", sum="m"
)


def data(shape, dtype="float32"):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def pull(operator, x, grad):
    return operator.vjp(x)[1](grad)[0]
