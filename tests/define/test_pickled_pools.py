"""Pools of processes map operators over slices: concurrent.futures and multiprocessing, with spawn."""

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import chunked_operators

X = chunked_operators.data((6, 30))
WAIT = 120  # seconds that a result may take
OPERATORS = ("smooth", "square", "column_sums")  # a loop kernel, a C kernel, a Python function


@pytest.fixture(scope="module")
def executor():
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.fixture(scope="module")
def pool():
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        yield pool


def slices(name):
    return list(X) if name != "column_sums" else list(X.reshape(6, 5, 6))


@pytest.mark.parametrize("name", OPERATORS)
def test_an_executor_maps_an_operator_over_slices(executor, name):
    assert executor.submit(os.getpid).result(WAIT) != os.getpid()
    op = getattr(chunked_operators, name)
    results = list(executor.map(op, slices(name), timeout=WAIT))
    np.testing.assert_array_equal(results, [op(x) for x in slices(name)])


@pytest.mark.parametrize("name", OPERATORS)
def test_a_pool_maps_an_operator_over_slices(pool, name):
    op = getattr(chunked_operators, name)
    results = pool.map_async(op, slices(name)).get(WAIT)
    np.testing.assert_array_equal(results, [op(x) for x in slices(name)])


def test_a_gradient_in_another_process(executor):
    """The operator that computes a derived gradient is pickled as a part of its operator."""
    op = chunked_operators.smooth
    ones = np.ones_like(X[0])
    expected = op.vjp(X[0])[1](ones)[0]
    assert executor.submit(chunked_operators.pull, op, X[0], ones).result(WAIT).tolist() == expected.tolist()
