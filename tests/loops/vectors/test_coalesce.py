# ruff: noqa: F821 - kernels, whose words are no names here
"""Loops over contiguous elements that run as one: values are those of the loops, for sizes that allow it or not."""

import functools
import re

import numpy as np
import pytest

from polyop.loops.emit.printer import source as source_of
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.pipeline import schedule
from polyop.loops.targets import isa


def scaled(x, w):
    """x may have longer rows than y."""
    y = output_tensor((x.shape[0], min(x.shape[1], w.shape[1])), x.dtype)
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            y[i, j] = 2 * x[i, j] + w[0, 0]
    return y


def two_results(x, w):
    """One result has rows of another length."""
    y = output_tensor(x.shape, x.dtype)
    z = output_tensor((x.shape[0], x.shape[1] + 1), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] + 1
            z[i, j] = x[i, j] - 1
    return y, z


def in_place(x, w):
    for i in range(x.shape[0] - 1):
        for j in range(x.shape[1]):
            x[i, j] = x[i, j] * 3 + 1
    return x


def of_a_column(x, w):
    """The second operand differs from column to column."""
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(min(x.shape[1], w.shape[1])):
            y[i, j] = x[i, j] - w[0, j]
    return y


def of_a_row(x, w):
    """It differs from row to row."""
    y = output_tensor(x.shape, x.dtype)
    for i in range(min(x.shape[0], w.shape[0])):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] - w[i, 0]
    return y


def where_it_is(x, w):
    """The element's own place is a value."""
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] + j
    return y


def under_a_condition(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > w[0, 0]:
                y[i, j] = x[i, j]
            elif j > 1:
                y[i, j] = w[0, 0]
    return y


def from_the_row_before(x, w):
    """Rows follow one another: the outer loop keeps its order."""
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if i > 0:
                y[i, j] = y[i - 1, j] + x[i, j]
            else:
                y[i, j] = x[i, j]
    return y


def mixed(x, w):
    """A product of matrices at each place of a row, as a convolution of one element is."""
    y = output_tensor((w.shape[0], x.shape[0], x.shape[1]), x.dtype)
    for o in range(w.shape[0]):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                for c in range(w.shape[1]):
                    y[o, i, j] += x[i, j] * w[o, c]
    return y


def sums_of_rows(x, w):
    """The range of the sum is another in each row."""
    y = output_tensor((w.shape[0], x.shape[0], x.shape[1]), x.dtype)
    for i in range(x.shape[0]):
        for o in range(w.shape[0]):
            for j in range(x.shape[1]):
                total = 0
                for c in range(max(0, 1 - i), min(w.shape[1], x.shape[0] - i)):
                    total += x[i + c, j] * w[o, c]
                y[o, i, j] = total
    return y


def everything(x, w):
    """A sum over both loops."""
    y = output_tensor((1,), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[0] += x[i, j]
    return y


KERNELS = [
    scaled, two_results, in_place, of_a_column, of_a_row, where_it_is, under_a_condition, from_the_row_before,
    mixed, sums_of_rows, everything,
]  # fmt: skip
CASES = [(kernel, dtype) for kernel in KERNELS for dtype in ("float32", "int16")]
SHAPES = [  # of x and w
    ((40, 3), (2, 3)), ((1, 5), (3, 9)), ((0, 3), (1, 3)), ((3, 0), (1, 1)), ((33, 7), (8, 7)), ((9, 40), (2, 3)),
    ((5, 1), (7, 2)), ((2, 16500), (1, 1)), ((130, 130), (2, 1)),
]  # fmt: skip


@functools.cache
def typed(kernel, dtype):
    return parse(kernel, [(dtype, 2), (dtype, 2)], {})


@pytest.fixture(scope="session")
def compiled(batch):
    """Return a function from a case to its operator; threads are used for any size."""
    path = batch.build(batch.text([typed(*case) for case in CASES], isa.available()[0]), "-DPOLYOP_GRAIN=1")

    @functools.cache
    def of(*case):
        rows = [(case[1], list("ij"), ""), (case[1], list("op"), "")]
        return batch.bound(case[0], rows, {}, path, CASES.index(case))

    return of


@pytest.mark.slow(8)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0].__name__}-{case[1]}")
def test_values_are_those_of_the_loops(case, compiled, batch):
    for shapes in SHAPES:
        random = np.random.default_rng(sum(shapes, ()))
        inputs = [random.integers(-3, 4, shape).astype(case[1]) for shape in shapes]
        expected = interpret(typed(*case), [one.copy() for one in inputs], {})
        for threads in (1, 3):
            with batch.threads(threads):
                results = compiled(*case)(*(one.copy() for one in inputs))
            for one, other in zip(expected, results, strict=True):
                np.testing.assert_array_equal(other, one, err_msg=f"{shapes} on {threads} threads")


@pytest.mark.parametrize("kernel", KERNELS)
def test_which_loops_run_as_one(kernel):
    """Where an operand differs by row or by column alone, or the place is a value, they do not."""
    text = source_of(schedule(typed(kernel, "float32")), isa.available()[0], "f")
    assert ("polyop_rows(" in text) == (kernel in (scaled, two_results, in_place, mixed, sums_of_rows))


def test_when_a_step_has_several_rows():
    """Rows have no gaps; and the ranges of sums are the same in the first row and in the last."""
    gaps = source_of(schedule(typed(scaled, "float32")), isa.available()[0], "f")
    assert re.search(
        r"i_rows = x_n0 > 1 && y_n1 == (.*) && x_n1 == \1 \? polyop_rows\(i_end - i, \1\) : 1;", gaps
    )
    ends = source_of(schedule(typed(sums_of_rows, "float32")), isa.available()[0], "f")
    assert "max_i64(0, (-(0 - 1))) == max_i64(0, (-((x_n0 - 1) - 1))) &&" in ends
