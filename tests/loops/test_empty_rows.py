# ruff: noqa: F821 - kernels, whose words are no names here
"""The greatest and the least of a row without elements is an error, as in NumPy."""

import re

import numpy as np
import pytest

import polyop
from polyop.core.errors import ArgumentValueError, KernelError, PolyopError


def greatest_inside(x, k):
    y = output_tensor((x.shape[0] - k.shape[0] + 1,), x.dtype)
    y[0] = max(x[0, 1:-1])
    return y


def least_of_each(x, k):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        y[i] = min(x[i, 0 : k[i]] * 2)
    return y


def greatest_from_the_diagonal(x, k):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        y[i] = max(x[i, i:3]) + 0 * k[i]
    return y


def greatest_where_there_is_one(x, k):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        if k[i] > 0:
            y[i] = max(x[i, 0 : k[i]])
    return y


def greatest_of_the_first(x, k):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        y[i] = max(x[i, 0:4]) + 0 * k[i]
    return y


SHAPES = [(3, 5), (4, 5), (3, 2), (3, 1), (2, 0), (0, 0), (1, 3)]
KERNELS = [
    polyop.kernel(function)
    for function in (
        greatest_inside,
        least_of_each,
        greatest_from_the_diagonal,
        greatest_where_there_is_one,
        greatest_of_the_first,
    )
]


def outcome(call, *arrays):
    """Return what a call gives, or that it raises."""
    try:
        return call(*arrays).tolist()
    except KernelError as error:
        assert re.search(r"line \d+: ((an )?index|a row without elements has no greatest)", str(error)), error
        return "raises"
    except (ValueError, IndexError) as error:
        assert not isinstance(error, PolyopError), error
        return "raises"


@pytest.mark.slow(1)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.python.__name__)
def test_the_greatest_of_no_elements_raises_where_numpy_does(kernel):
    outcomes = []
    for rows, columns in SHAPES:
        x = np.arange(rows * columns, dtype=np.float64).reshape(rows, columns)
        for k in (np.arange(rows), np.arange(rows) + 1, np.full(rows, -1)):
            wanted = outcome(kernel.python, x, k)
            assert outcome(kernel, x, k) == wanted, (x.shape, k)
            outcomes.append(wanted == "raises")
    assert {*outcomes} == {True, False}


def test_a_slice_that_is_empty_for_all_sizes_has_no_greatest():
    def never(x):
        y = output_tensor((1,), x.dtype)
        y[0] = max(x[3:1])
        return y

    with pytest.raises(ArgumentValueError, match=r"max\(x\[3:1\]\) is of a row without elements"):
        polyop.kernel(never)(np.arange(5.0))
