"""Rows that are read where they lie keep the sizes of the author's tensor: in checks, and from the end."""
# ruff: noqa: F821 - the language's words are not names of this module

import numpy as np
import pytest

import polyop

WHOLE = np.arange(900 * 500, dtype=np.float32).reshape(900, 500)
COLUMNS = WHOLE[:, 5:405]  # large enough to be read in place, after a few calls


def picked(x, index):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i, index[i]]
    return y


def from_the_end(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i, -1]
    return y


def on_the_diagonal(x):
    y = output_tensor((400,), x.dtype)
    for i in range(400):
        y[i] = x[i, i - x.shape[1]]
    return y


def too_far(x, n):
    y = output_tensor((x.shape[0], n.shape[0]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(n.shape[0]):
            y[i, j] = x[i, j]
    return y


@pytest.mark.parametrize("function", [picked, from_the_end])
def test_indices_from_the_end(function):
    kernel = polyop.kernel(function)
    more = [np.full(900, -1)] if function is picked else []
    for _ in range(8):
        np.testing.assert_array_equal(kernel(COLUMNS, *more), COLUMNS[:, -1])


def test_an_index_of_the_size_from_the_end():
    kernel = polyop.kernel(on_the_diagonal)
    for _ in range(8):
        np.testing.assert_array_equal(kernel(COLUMNS), np.diagonal(COLUMNS))


def test_an_index_outside_stays_an_error():
    kernel = polyop.kernel(too_far)
    for _ in range(8):
        with pytest.raises(polyop.PolyopError, match=r"dimension 1 of x, which has size 400"):
            kernel(COLUMNS, np.zeros(450))
