# ruff: noqa: F821 - kernels, whose words are no names here
"""Rows are combined if their sizes are equal, also where data or a loop decides; else the call fails, as NumPy."""

import itertools
import re

import numpy as np
import pytest

import polyop
from polyop.core.errors import KernelError
from polyop.loops.emit.printer import source
from polyop.loops.frontend.parse import parse
from polyop.loops.pipeline import schedule

torch = pytest.importorskip("torch", reason="batches and gradients are PyTorch's")
REFUSED = "refused"


def copied(x, at):
    y = output_tensor((3,), x.dtype)
    y[:] = x[at[0] : at[1]]
    return y


def reduced(x, at):
    y = output_tensor((3,), x.dtype)
    y[0] = dot(x[at[0] : at[1]], x[at[1] :])
    y[1] = sum(x[at[0] : at[1]] + x[:4])
    if at[0] > 2:
        y[2] = sum(x[at[0] : at[2]] - x[: at[1]])
    return y


def segments(x, at):
    y = output_tensor(x.shape, x.dtype)
    for i in range(at.shape[0] - 1):
        y[at[i] : at[i + 1]] += x[at[i] : at[i + 1]] * x[at[i] + 1 : at[i + 1] + 1]
    return y


def triangle(x, w):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        y[i] = dot(x[i, :i], w[:i])
    return y


def has_one(x, at):
    """A row that may have one element by chance is not broadcast."""
    y = output_tensor(x.shape, x.dtype)
    y[:] = x * x[at[0] : at[1]]
    return y


def outcome(call, *arguments):
    """Return the result, or that it was refused because of the sizes of rows."""
    try:
        return call(*arguments)
    except (ValueError, KernelError) as problem:
        assert re.search(r"broadcast|line \d+: rows of different sizes are combined", str(problem))
        return REFUSED


def in_a_batch(operator):
    """Return a function that calls an operator for one sample, in a batch with itself."""

    def call(*arguments):
        both = [torch.from_numpy(np.stack([one, one])) for one in arguments]
        first, second = torch.vmap(operator)(*both)
        assert torch.equal(first, second)
        return first.numpy()

    return call


@pytest.mark.slow(4)
@pytest.mark.parametrize("function", [copied, reduced, segments])
@pytest.mark.parametrize("dtype", ["float32", "int16", "complex64"])
@pytest.mark.parametrize("wrapped", [lambda operator: operator, in_a_batch], ids=["one", "batch"])
def test_sizes_that_depend_on_data(function, dtype, wrapped):
    operator = polyop.kernel(function, name=f"row_sizes::{function.__name__}_{dtype}")
    x, refused = np.arange(1, 10).astype(dtype), 0
    cases = list(itertools.product(range(0, 10, 3), range(2, 9, 2), (5, 9)))
    for at in cases:
        if 1 in np.diff(at) and function is not segments:
            continue  # NumPy broadcasts what has one element by chance
        expected = outcome(operator.python, x, np.array(at))
        np.testing.assert_array_equal(outcome(wrapped(operator), x, np.array(at)), expected, err_msg=f"{at}")
        refused += expected is REFUSED
    assert 0 < refused < len(cases)


def test_a_row_that_has_one_element_by_chance_is_not_broadcast():
    operator = polyop.kernel(has_one, name="row_sizes::has_one")
    assert outcome(operator, np.arange(4.0), np.array([1, 2])) is REFUSED
    np.testing.assert_array_equal(operator(np.arange(1.0), np.array([0, 1])), [0])


TRIANGLE = polyop.kernel(triangle, name="row_sizes::triangle")


@pytest.mark.parametrize(("n", "m", "size"), list(itertools.product((0, 1, 4), (3, 4, 5), (2, 3, 4, 5))))
def test_sizes_that_depend_on_a_loop(n, m, size):
    x, w = np.arange(1.0, n * m + 1).reshape(n, m), np.arange(1.0, size + 1)
    np.testing.assert_array_equal(outcome(TRIANGLE, x, w), outcome(TRIANGLE.python, x, w))


def test_the_gradient_of_such_rows():
    x, w = (torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((4, 4), (4,)))
    assert torch.autograd.gradcheck(TRIANGLE, (x, w))
    operator, at = polyop.kernel(segments, name="row_sizes::slopes"), torch.tensor([0, 2, 2, 3])
    assert torch.autograd.gradcheck(lambda w: operator(w, at), (w,))


def test_a_check_that_follows_from_the_sizes_of_tensors_is_made_once_a_call():
    text = source(schedule(parse(triangle, [("float64", 2), ("float64", 1)], {})), "avx2", "f")
    assert re.search(r'return polyop_fail\(extra, "line \d+: rows of different sizes are combined"\);', text)
    assert "polyop_inside" not in text


@polyop.kernel
def less_its_first(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i]
    y[:] -= y[0]
    return y


@polyop.kernel
def filled_from_itself(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i]
    y[1:] = y[1] * 2 + y[0]
    return y


@polyop.kernel
def placed_by_itself(x):
    y = output_tensor((3, x.shape[0]), x.dtype)
    y[int(y[0, 0].real) % 3, :] -= x[:]
    y[int(y[0, 1].real) % 3, :] = 2 * x[:]
    return y


@pytest.mark.parametrize("dtype", ["float64", "int8", "complex128"])
@pytest.mark.parametrize("kernel", [less_its_first, filled_from_itself, placed_by_itself])
def test_what_a_row_is_set_from_is_read_before(kernel, dtype):
    """NumPy computes the value and the place before it stores the first element."""
    x = np.array([3, 1, 4, 1, 5]).astype(dtype)
    np.testing.assert_array_equal(kernel(x), kernel.python(x.copy()))
