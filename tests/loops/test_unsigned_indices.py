# ruff: noqa: F821 - kernels, whose words are no names here
"""An index of 2**63 or more is out of range: it does not wrap to a negative one, which counts from the end."""

import numpy as np
import pytest

from polyop import Custom
from polyop.core.errors import KernelError
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret


def gather(x, k):
    y = output_tensor(k.shape, x.dtype)
    for i in range(k.shape[0]):
        y[i] = x[k[i]]
    return y


def gather_int(x, k):
    y = output_tensor(k.shape, x.dtype)
    for i in range(k.shape[0]):
        y[i] = x[int(k[i])]
    return y


def gather_scalar(x, k):
    y = output_tensor(k.shape, x.dtype)
    for i in range(k.shape[0]):
        position = k[i]
        y[i] = x[position]
    return y


def gather_rows(x, k):
    y = output_tensor((k.shape[0], 2), x.dtype)
    for i in range(k.shape[0]):
        for j in range(2):
            y[i, j] = x[k[i]] + j
    return y


def scatter(x, k):
    for i in range(k.shape[0]):
        x[k[i]] = i + 10
    return x


def scatter_add(x, k):
    y = output_tensor(x.shape, x.dtype)
    for i in range(k.shape[0]):
        y[k[i]] += x[i]
    return y


FUNCTIONS = [gather, gather_int, gather_scalar, gather_rows, scatter, scatter_add]


@pytest.mark.slow(6)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("wrong", [2**64 - 1, 2**64 - 6, 2**63, 2**63 - 1, 6])
def test_an_index_beyond_63_bits_is_the_out_of_range_error(function, wrong):
    op = Custom(function, func_type="hybrid")
    x, k = np.arange(6.0), np.array([1, wrong], np.uint64)
    with pytest.raises(KernelError, match="is outside dimension 0 of [xy], which has size 6"):
        op(x.copy(), k)
    kernel = parse(function, [("float64", 1), ("uint64", 1)], {})
    with pytest.raises(IndexError, match="out of range"):
        interpret(kernel, [x, k])


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_indices_of_uint64_are_those_of_int64(function):
    op = Custom(function, func_type="hybrid")
    x, k = np.arange(6.0), np.array([5, 0, 3])
    np.testing.assert_array_equal(op(x.copy(), k.astype(np.uint64)), op(x.copy(), k))


def test_cuda_gives_the_error_too(emulate, batch):
    types = [("float64", 1), ("uint64", 1)]
    path = emulate.build(emulate.text([parse(gather, types, {})]))
    run = batch.bound(gather, types, {}, path, 0)
    np.testing.assert_array_equal(run(np.arange(6.0), np.array([5, 0], np.uint64)), [[5, 0]])
    with pytest.raises(KernelError, match="is outside dimension 0 of x, which has size 6"):
        run(np.arange(6.0), np.array([1, 2**64 - 1], np.uint64))
