# ruff: noqa: F821 - kernels, whose words are no names here
"""Register reuse: results equal to the last bit to those of plain loads, and no element beyond is read."""

import ctypes
import functools
import mmap

import numpy as np
import pytest

import instruction_sets
from polyop.loops.emit.printer import source as source_of
from polyop.loops.frontend.parse import parse
from polyop.loops.pipeline import schedule

NEVER = ("-DPOLYOP_CONCAT_LANES=0",)
COLUMNS = (9, 10, 16, 17, 23, 24, 25, 31, 32, 33, 40, 41, 47, 48, 49, 64, 65, 100)


def around(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1] - 2):
            y[i, j + 1] = x[i, j] + 2 * x[i, j + 1] + 3 * x[i, j + 2]
    return y


def five_points(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(1, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 1):
            y[i, j] = x[i, j - 1] + x[i, j + 1] + x[i - 1, j] + x[i + 1, j]
    return y


def a_vector_apart(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1] - 8):
            y[i, j] = x[i, j] - x[i, j + 3] + x[i, j + 8]
    return y


def two_rows(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1] - 5):
            y[i, j] = x[i, j] * w[j] + x[i, j + 5] * w[j + 1] + w[j + 4]
    return y


def from_the_second(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(1, x.shape[1]):
            y[i, j] = x[i, j] - x[i, j - 1]
    return y


def to_the_sum(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1] - 1):
            s = x[i, j] + x[i, j + 1]
            y[i, j] = s * s
    return y


def sometimes(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1] - 2):
            if x[i, j] > x[i, j + 1]:
                y[i, j] = x[i, j + 2]
    return y


def far_apart(x, w):
    y = output_tensor((x.shape[0], x.shape[1]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1] // 2):
            y[i, j] = x[i, j] + x[i, j + x.shape[1] // 2]
    return y


def in_place(x, w):
    for i in range(x.shape[0]):
        for j in range(x.shape[1] - 1):
            x[i, j] = x[i, j] + x[i, j + 1]
    return x


def but_the_first(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j - 1] + x[i, j] if j > 0 else x[i, j]
    return y


def chosen(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(1, x.shape[1]):
            y[i, j] = x[i, j - 1] + x[i, j] if x[i, j] > 0 else 2.0
    return y


def named_alike(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1] - 1):
            j_row0 = x[i, j] * 2
            j_row0_next = x[i, j + 1] + j_row0
            y[i, j] = j_row0 * j_row0_next
    return y


SLIDE = (named_alike, around, five_points, a_vector_apart, two_rows, from_the_second, to_the_sum, sometimes)
SLIDE += (but_the_first,)
PLAIN = (far_apart, in_place, chosen)
CASES = [(f, d) for f in (*SLIDE, *PLAIN) for d in ("float32", "float64")]
CASES += [(around, d) for d in ("int32", "int64", "int16", "float16")]
pytestmark = pytest.mark.filterwarnings("ignore::polyop.UninitialisedWarning")


@functools.cache
def typed(function, dtype):
    return parse(function, [(dtype, 2), (dtype, 1)], {})


@pytest.fixture(scope="session", params=instruction_sets.EACH)
def libraries(request, batch):
    """Two builds of the same text: one reuses registers if it can, one loads each vector."""
    source = batch.text([typed(*case) for case in CASES], request.param)
    return [batch.build(source, *flags) for flags in ((), NEVER)]


@pytest.fixture
def fenced():
    """A function that copies an array beside a page that must not be touched, after it or before it."""
    page, libc, mappings = mmap.PAGESIZE, ctypes.CDLL(None, use_errno=True), []

    def copy(array, *, last):
        pages = -(-array.nbytes // page) + 2
        memory = mmap.mmap(-1, pages * page)
        whole = np.frombuffer(memory, np.uint8)
        first = (pages - 1) * page - array.nbytes if last else page
        for closed in (0, pages - 1):
            at = ctypes.c_void_p(whole.ctypes.data + closed * page)
            assert libc.mprotect(at, ctypes.c_size_t(page), 0) == 0
        mappings.append(memory)
        copy = whole[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
        copy[...] = array
        return copy

    return copy


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0].__name__}-{c[1]}")
@pytest.mark.parametrize("last", [True, False])
def test_the_same_bits_and_no_element_more(case, last, libraries, batch, fenced):
    function, dtype = case
    for columns in COLUMNS:
        random = np.random.default_rng(columns)
        x = (random.normal(size=(3, columns)) * 20).astype(dtype)
        w = (random.normal(size=columns) * 20).astype(dtype)
        results = []
        for library in libraries:
            here, there, y = (fenced(a, last=last) for a in (x, w, np.zeros_like(x)))
            batch.call(library, CASES.index(case), [here, there], [] if function is in_place else [y])
            results.append((here.tobytes(), y.tobytes()))
        assert results[0] == results[1]
        assert function is in_place or any(results[0][1])


@pytest.mark.parametrize("function", [*SLIDE, *PLAIN])
def test_which_loops_do(function):
    """Not in loops that write what they read, nor for conditional loads, nor for rows that are far apart."""
    source = source_of(schedule(typed(function, "float64")), instruction_sets.BEST, "f")
    assert ("polyop_concat_lanes(" in source) == (function in SLIDE)


def test_a_checked_kernel_loads_each_element():
    source = source_of(schedule(typed(around, "float64")), instruction_sets.BEST, "f", checked=True)
    assert "polyop_concat_lanes(" not in source
