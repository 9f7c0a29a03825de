"""Which buffers start as zeros: none, all, or depending on sizes (if an element may be read before it is written)."""
# ruff: noqa: F821 - the language's words are not names of this module

import ctypes

import numpy as np
import pytest

from polyop import Custom, CustomRegOp
from polyop.binary.open import open_library
from polyop.core.errors import KernelError
from polyop.loops.emit.printer import source as source_of
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.pipeline import schedule
from polyop.loops.targets import isa

INFORMATION = CustomRegOp().attr("n", "required", "int").target("CPU").get_op_info()


def picked(x, at):
    y = output_tensor((at.shape[0], x.shape[1]), x.dtype)
    for i in range(at.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[at[i], j]
    return y


def first_rows(x, at):
    y = output_tensor((at.shape[0], x.shape[1]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] + 1
    return y


def first_columns(x, at):
    y = output_tensor((x.shape[0], at.shape[0]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * 2
    return y


def read_beyond(x, at):
    y = output_tensor((at.shape[0], x.shape[1]), x.dtype)
    kept = allocate((at.shape[0], x.shape[1]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            kept[i, j] = x[i, j] * x[i, j]
    for i in range(at.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = kept[at.shape[0] - 1 - i, j]
    return y


def inner(x, at):
    y = output_tensor((x.shape[0], x.shape[1]), x.dtype)
    for i in range(1, x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j]
    return y


def added(x, at):
    y = output_tensor((at.shape[0], x.shape[1]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] += x[i, j]
    return y


def even(x, at):
    y = output_tensor((x.shape[0], x.shape[1]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if at[0] > 0:
                y[i, j] = x[i, j]
    return y


NEVER, ALWAYS = [picked], [inner, added, even]
SOMETIMES = {first_rows: "y", first_columns: "y", read_beyond: "kept"}
FUNCTIONS = [*NEVER, *ALWAYS, *SOMETIMES]
SIZES = [(5, 3, 5), (5, 3, 8), (4, 7, 7), (4, 6, 7), (0, 3, 4), (3, 0, 4), (1, 1, 1)]


def typed(function):
    return parse(function, [("float32", 2), ("int64", 1)], {})


@pytest.mark.parametrize("function", NEVER)
def test_a_buffer_that_is_written_everywhere_does_not_start_as_zeros(function):
    buffers = schedule(typed(function)).kernel.buffers.values()
    assert not any(b.zeroed for b in buffers)


@pytest.mark.parametrize("function", ALWAYS)
def test_a_buffer_that_is_never_written_everywhere_starts_as_zeros(function):
    y = schedule(typed(function)).kernel.buffers["y"]
    assert (y.zeroed, y.zeroed_if) == (True, None)


@pytest.mark.parametrize("function", SOMETIMES)
def test_sizes_decide_which_buffers_start_as_zeros(function):
    program = schedule(typed(function))
    name = SOMETIMES[function]
    assert program.kernel.buffers[name].zeroed_if
    zero = f"polyop_zero(self.{name},"
    (line,) = [row for row in source_of(program, isa.available()[0], "f").splitlines() if zero in row]
    assert line.strip().startswith("if (")
    text = source_of(program, "cuda", "f").splitlines()
    (at,) = [k for k, row in enumerate(text) if f"polyop_clear(self.{name}," in row]
    assert "&& (" in text[at - 1]


def sum_in_zeros(x):
    y = np.zeros(1, x.dtype)
    for i in range(x.shape[0]):
        y[0] += x[i]
    return y


def sum_in_zeros_like(x):
    y = np.zeros_like(x)
    for i in range(1, x.shape[0]):
        y[i] = y[i - 1] + x[i]
    return y


def sum_in_empty(x):
    y = np.empty(1, x.dtype)
    for i in range(x.shape[0]):
        y[0] += x[i]
    return y


@pytest.mark.parametrize("function", [sum_in_zeros, sum_in_zeros_like, sum_in_empty])
def test_zeros_of_the_author_may_be_read(function):
    y = schedule(parse(function, [("float32", 1)], {})).kernel.buffers["y"]
    assert y.zeroed
    assert bool(y.first_read) == (function is sum_in_empty)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_note_names_results_that_start_as_zeros(function):
    program = schedule(typed(function))
    notes = [n for n in program.notes if n.kind == "initialisation"]
    y = program.kernel.buffers["y"]
    sometimes = " for some sizes" if function in SOMETIMES else ""
    reason = ": some elements are not written, or not before they are read"
    expected = [(y.line, f"y starts as zeros{sometimes}{reason}")] if y.zeroed else []
    assert [(n.line, n.text) for n in notes] == expected
    assert y.zeroed == (function not in NEVER and function is not read_beyond)


@pytest.fixture(scope="session")
def opened(batch):
    path = batch.build(batch.text([typed(f) for f in FUNCTIONS], isa.available()[0]))
    open_library(path)
    return ctypes.CDLL(str(path))


@pytest.mark.slow(8)
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_results_do_not_depend_on_the_memory_before(function, size, opened):
    n, m, r = size
    random = np.random.default_rng(size)
    inputs = [random.normal(size=(n, m)).astype("float32"), random.integers(0, max(n, 1), r)]
    try:
        (expected,) = interpret(typed(function), inputs, {})
    except IndexError:
        pytest.skip("an index leaves its tensor for these sizes: an error, tested elsewhere")
    result = np.full_like(expected, 7)
    arrays = [*inputs, result]
    shapes = [(ctypes.c_int64 * a.ndim)(*a.shape) for a in arrays]
    pointers = (ctypes.c_void_p * 3)(*(a.ctypes.data for a in arrays))
    rows = (ctypes.c_void_p * 3)(*(ctypes.addressof(s) for s in shapes))
    call = getattr(opened, f"loops_{FUNCTIONS.index(function)}")
    assert call(3, pointers, None, rows, None, None, None) == 0
    np.testing.assert_allclose(result, expected, rtol=1e-6)


def of_size(x, n):
    y = output_tensor((x.shape[0],), x.dtype)
    kept = allocate((n - 1,), x.dtype)
    for i in range(x.shape[0]):
        for r in range(n - 1):
            kept[r] = x[i] * r
        y[i] = 0.0
        for r in range(n - 1):
            y[i] += kept[r]
    return y


@pytest.mark.parametrize("n", [0, -5])
def test_a_temporary_of_a_negative_size(n):
    op = Custom(of_size, func_type="hybrid", reg_info=INFORMATION)
    np.testing.assert_array_equal(op(np.ones(2, "float32"), 1), [0, 0])
    with pytest.raises(KernelError, match=rf"a size of kept cannot be negative, but got {n - 1}"):
        op(np.ones(2, "float32"), n)


def scattered(x, z, t):
    a, b, c = x.shape
    n, m, r = z.shape
    y = output_tensor((n, n, c), x.dtype)
    for i in range(b - 1):
        for j in range(m):
            for k in range(a):
                y[j, i, k] -= z[k, 0, j]
        for j in range(0, b, 2):
            for k in range(r):
                y[j, i, k] = max(y[j, i, k], z[i, i, j])
            for k in range(c - 2):
                y[i, k, j] = min(y[i, k, j], x[j, -1, k])
                y[k, 0, i] = x[0, 0, 0]
                y[j, k, i] = x[0, 0, 1]
    for i in range(t.shape[0]):
        for j in range(m):
            for k in range(b - 1):
                y[j, i, k] *= t[i]
                y[j, k, i] = max(y[j, k, i], z[0, k, i])
            for k in range(b):
                y[i, j, k] -= t[k]
                y[k, i, j] = max(y[k, i, j], t[k])
                y[0, i, j] = x[k, 0, k]
    return y


def test_hundreds_of_sets_are_not_joined():
    """To join them would exceed the quota of isl, and the kernel would stay in the author's order."""
    program = schedule(parse(scattered, [("float32", 3), ("float32", 3), ("float32", 1)], {}))
    y = program.kernel.buffers["y"]
    assert (y.zeroed, y.zeroed_if) == (True, None)
