# ruff: noqa: F821 - kernels, whose words are no names here
"""Quotients that a loop does not change are divided once before it; the values are those of the loops."""

import functools
import re

import numpy as np
import pytest

from polyop.loops.emit.printer import source as source_of
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.pipeline import schedule
from polyop.loops.targets import isa


def grouped(x, w, parts):
    """Each row of w is in a group; a condition is around the division."""
    y = output_tensor((w.shape[0], x.shape[1]), x.dtype)
    for o in range(w.shape[0]):
        for j in range(x.shape[1]):
            for p in range(w.shape[1]):
                if o + p != 1:
                    y[o, j] += x[o // (w.shape[0] // parts.shape[0]), j] * w[o, p]
    return y


def tiled(x, w, parts):
    """A product with a part of the rows of x, in a register tile."""
    y = output_tensor((w.shape[0], x.shape[1]), x.dtype)
    for o in range(w.shape[0]):
        for j in range(x.shape[1]):
            for p in range(min(w.shape[1], x.shape[0] // (parts.shape[0] + 1))):
                y[o, j] += x[x.shape[0] % (parts.shape[0] + 1) + p, j] * w[o, p]
    return y


def of_the_sum(x, w, parts):
    """The quotient of the inner loop differs from iteration to iteration."""
    y = output_tensor((w.shape[0], x.shape[1]), x.dtype)
    for o in range(w.shape[0]):
        for j in range(x.shape[1]):
            for p in range(w.shape[1]):
                y[o, j] += x[p // (parts.shape[0] + 1), j] * w[o, p]
    return y


def of_the_lanes(x, w, parts):
    """So does that of the lanes, and the bounds of the lanes are quotients, too."""
    y = output_tensor((w.shape[0], x.shape[1]), x.dtype)
    for o in range(w.shape[0]):
        for j in range(o // (parts.shape[0] + 1), x.shape[1] - 1 // (parts.shape[0] + 1)):
            y[o, j] = x[0, j // (parts.shape[0] + 1)] + x[o % (parts.shape[0] + 1), j] + j
    return y


def of_a_scalar(x, w, parts):
    """A scalar that an iteration sets is divided where it has its value."""
    y = output_tensor((w.shape[0], x.shape[1]), x.dtype)
    for o in range(w.shape[0]):
        for j in range(x.shape[1]):
            k = int64(w[o, 0] * 0)
            for p in range(w.shape[1]):
                k += 1
                y[o, j] += x[k // (w.shape[1] + 1), j] * w[o, p]
    return y


FUNCTIONS = (grouped, tiled, of_the_sum, of_the_lanes, of_a_scalar)
CASES = [(function, dtype) for function in FUNCTIONS for dtype in ("float32", "float64", "int32")]
SIZES = (
    (4, 4, 2, 33, 2),
    (5, 5, 3, 70, 2),
    (6, 6, 1, 5, 3),
    (2, 1, 1, 64, 1),
    (3, 3, 2, 0, 1),
    (9, 0, 2, 9, 1),
)
SIZES += ((5, 4, 3, 40, 0), (5, 3, 2, 19, 4))


@functools.cache
def typed(function, dtype):
    return parse(function, [(dtype, 2), (dtype, 2), (dtype, 1)], {})


@pytest.fixture(scope="session")
def compiled(batch):
    """Return a function from a case to its operator; threads are used for any size."""
    path = batch.build(batch.text([typed(*case) for case in CASES], isa.available()[0]), "-DPOLYOP_GRAIN=1")

    @functools.cache
    def of(*case):
        rows = [(case[1], list("ij"), ""), (case[1], list("op"), ""), (case[1], list("g"), "")]
        return batch.bound(case[0], rows, {}, path, CASES.index(case))

    return of


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0].__name__}-{case[1]}")
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_values_are_those_of_the_loops(case, size, compiled, batch):
    """A part of no rows has the divisor 0, and more parts than rows make a group of none."""
    rows, outputs, terms, columns, parts = size
    random = np.random.default_rng(size)
    shapes = ((rows, columns), (outputs, terms), (parts,))
    inputs = [random.integers(-3, 4, shape).astype(case[1]) for shape in shapes]
    expected = interpret(typed(*case), inputs, {})[0]
    for threads in (1, 3):
        with batch.threads(threads):
            np.testing.assert_array_equal(compiled(*case)(*inputs)[0], expected)


@pytest.mark.parametrize("function", [grouped, tiled])
def test_no_division_is_in_a_sum(function):
    text = source_of(schedule(typed(function, "float32")), isa.available()[0], "f")
    sums = [line for line in text.splitlines() if re.search(r"load(_n)?_f32v4\(&x|\bw\[", line)]
    assert sums
    assert not [line for line in sums if "floordiv" in line or "mod_" in line]
    assert re.search(r"const int64_t q0_\d+ = (floordiv|mod)_i64", text)
