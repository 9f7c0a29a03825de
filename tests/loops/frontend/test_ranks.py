# ruff: noqa: F821 - kernels, whose words are no names here
"""How many dimensions tensors have, by their uses."""

import pytest

import polyop
from polyop.core.errors import ArgumentValueError
from polyop.loops.frontend.parse import outline


def elements(x):
    """Stores of elements: y has the dimensions of x."""
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * 2
    return y


def outer(a, b):
    """y has two dimensions, so what is stored is a number for certain."""
    y = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            y[i, j] = a[i] * b[j]
    return y


def of_rows(x, w, b):
    d = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        d[i] = (x[i] - sum(x[i])) * w[:] + dot(b, b)
    return d


def of_a_named_row(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        row = x[i]
        for j in range(x.shape[1]):
            y[i] += max(0, row[j])
    return y


def of_a_named_number(x, at):
    y = output_tensor((at.shape[0],), x.dtype)
    for i in range(at.shape[0]):
        v = x[at[i], 0]
        if v > 0:
            y[i] = v
    return y


def of_shapes(x, z):
    n, m = x.shape
    y = output_tensor((n, m), x.dtype)
    for i, j in grid(z.shape):
        y[i, j] = 1
    y[0] = x[0]
    return y


def by_dimensions(x):
    y = output_tensor(x.shape, x.dtype)
    if x.ndim == 2:
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                y[i, j] = x[i, j]
    else:
        for i in range(x.shape[0]):
            y[i] = 1 if x[i] > 0 else 0
    return y


def in_segments(x, ends):
    y = output_tensor((ends.shape[0],), x.dtype)
    k = 0
    for r in range(ends.shape[0]):
        total = 0.0
        while k < ends[r]:
            total += x[k]
            k += 1
        y[r] = total
    return y


def square_of(x, i):
    return x[i, i] ** 2


def in_a_helper(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        y[i] = square_of(x, i)
    return y


def in_place(total, rows, at):
    for i in range(at.shape[0]):
        for j in range(rows.shape[1]):
            total[at[i], j] += rows[i, j]
    return total


def of_slices(x, w):
    """x[:, i] says that x has more than one dimension, and w[1:] nothing."""
    y = output_tensor((x.shape[1],), x.dtype)
    for i in range(x.shape[1]):
        y[i] = sum(x[:, i]) + max(w[1:])
    return y


def of_modes(x, mode: str = "rows"):
    """Each text of a string has uses of its own."""
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        if mode == "rows":
            y[i] = x[i, 0] + 1.0 if x[i, 0] > 0 else 0.0
        elif mode == "numbers":
            y[i] = x[i] + 1.0 if x[i] > 0 else 0.0
    return y


def of_no_dimensions(x, key):
    y = output_tensor((3,), x.dtype)
    for i in range(3):
        y[i] = x[()] * random(key, i)
    return y


def of_keys(keys, at):
    y = output_tensor((at.shape[0],), "float32")
    for i in range(at.shape[0]):
        y[i] = random(keys[i], at[i])
    return y


def of_products_of_rows(x, w):
    """A sum takes a row, so x[i] is none of one dimension."""
    y = output_tensor((x.shape[0],), "float64")
    for i in range(x.shape[0]):
        y[i] = sum(x[i] * x[i]) + sum(2 * w[i])
    return y


TOLD = {
    elements: {"x": 2},
    outer: {"a": 1, "b": 1},
    of_rows: {},
    of_a_named_row: {"x": 2},
    of_a_named_number: {"x": 2, "at": 1},
    of_shapes: {"x": 2, "z": 2},
    by_dimensions: {},
    in_segments: {"x": 1, "ends": 1},
    in_a_helper: {"x": 2},
    in_place: {"total": 2, "rows": 2, "at": 1},
    of_slices: {},
    of_modes: {},
    of_no_dimensions: {"x": 0},
    of_keys: {"at": 1},
    of_products_of_rows: {},
}


@pytest.mark.parametrize("function", TOLD, ids=lambda f: f.__name__)
def test_uses_tell_ranks(function):
    assert outline(function).ranks == TOLD[function]


def two_ranks(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        if x[i] > 0:
            y[i] += 1
        y[i] += x[i, 0]
    return y


def two_names_for_three(x):
    n, m = x.shape
    y = output_tensor((n,), x.dtype)
    for i in range(n):
        y[i] = x[i, 0, m - 1]
    return y


@pytest.mark.parametrize("function", [two_ranks, two_names_for_three], ids=lambda f: f.__name__)
def test_uses_that_contradict_each_other_are_an_error_with_both_lines(function):
    first = function.__code__.co_firstlineno
    words, lines = {
        two_ranks: (("x[i]", "needs 1", "x[i, 0]", "needs 2"), (3, 5)),
        two_names_for_three: (("x.shape", "needs 2", "x[i, 0, m - 1]", "needs 3"), (1, 4)),
    }[function]
    with pytest.raises(ArgumentValueError, match="x has one number of dimensions") as caught:
        polyop.kernel(function, name=f"ranks::{function.__name__}").schema
    text = str(caught.value)
    for word in (*words, *(f"in line {first + line}" for line in lines), "a row is no number"):
        assert word in text
