# ruff: noqa: F821 - kernels, whose words are no names here
"""Streaming stores: results equal to the last bit to those of ordinary stores, and which stores may be such."""

import functools
import subprocess

import numpy as np
import pytest

import instruction_sets
from polyop import Custom
from polyop.loops.emit.printer import source as source_of
from polyop.loops.frontend.parse import parse
from polyop.loops.pipeline import schedule

TINY = ("-DPOLYOP_CACHED=0", "-DPOLYOP_LONG_ROW=64")
NEVER = ("-DPOLYOP_CACHED=INT64_MAX",)
SIZES = ((0, 3), (3, 0), (1, 1), (3, 16), (2, 17), (5, 33), (4, 64), (3, 100), (7, 130))


def scaled(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * 3 + w[j]
    return y


def two_dtypes(x, w):
    y = output_tensor(x.shape, x.dtype)
    z = output_tensor(x.shape, "float64")
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] + 1
            z[i, j] = x[i, j] / 3
    return y, z


def truths(x, w):
    y = output_tensor(x.shape, "bool")
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] > w[j]
    return y


def halves(x, w):
    y = output_tensor(x.shape, "float16")
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * 0.3
    return y


def flat(x, w):
    y = output_tensor((x.shape[1],), x.dtype)
    for j in range(x.shape[1]):
        y[j] = w[j] - 1
    return y


def shifted(x, w):
    y = output_tensor((x.shape[0], x.shape[1] + 1), x.dtype)
    for i in range(x.shape[0]):
        y[i, 0] = 1
        for j in range(x.shape[1]):
            y[i, j + 1] = x[i, j]
    return y


def picked(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[int(w[i % 1] * 0), j]
    return y


def with_sum(x, w):
    y = output_tensor(x.shape, x.dtype)
    s = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        t = 0.0
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * w[j]
            t += x[i, j] / 7
        s[i] = t
    return y, s


def read_later(x, w):
    y = output_tensor(x.shape, x.dtype)
    s = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * 2
        for j in range(x.shape[1]):
            s[i] += y[i, j]
    return y, s


def written_twice(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j]
        for j in range(0, x.shape[1], 2):
            y[i, j] = 5
    return y


def sometimes(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > w[j]:
                y[i, j] = x[i, j]
    return y


def in_place(x, w):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] = w[j]
    return x


PAST = (scaled, two_dtypes, truths, halves, flat, picked, with_sum)
NOT = (shifted, read_later, written_twice, sometimes, in_place)
CASES = [
    *((f, d) for f in (*PAST, *NOT) for d in ("float32", "float64")),
    (scaled, "int8"),
    (scaled, "int32"),
]
pytestmark = pytest.mark.filterwarnings("ignore::polyop.UninitialisedWarning")


@functools.cache
def typed(function, dtype):
    return parse(function, [(dtype, 2), (dtype, 1)], {})


@pytest.fixture(scope="session", params=instruction_sets.EACH)
def libraries(request, batch):
    """Two builds of the same text: one with streaming stores wherever they are allowed, one without."""
    source = batch.text([typed(*case) for case in CASES], request.param)
    return [batch.build(source, *flags) for flags in (TINY, NEVER)]


def placed(shape, dtype, start):
    """Return an array ``start`` elements after the start of a cache line, and the memory around it."""
    size = np.dtype(dtype).itemsize
    count = int(np.prod(shape)) * size
    whole = np.full(count + 256, 0xA5, np.uint8)
    first = -whole.ctypes.data % 64 + 64 + start * size
    return whole[first : first + count].view(dtype).reshape(shape), whole, first


def run(batch, library, case, size, start):
    """Return the bytes of the outputs, after a check that the memory around them is untouched."""
    kernel = typed(*case)
    random = np.random.default_rng(size)
    n, m = size
    x, w = random.normal(size=(n, m)) * 20, random.normal(size=max(n, m, 1)) * 20
    inputs = [x.astype(case[1]), w.astype(case[1])]
    fresh = [kernel.buffers[name] for name in kernel.outputs if kernel.buffers[name].role == "output"]
    shapes = [{flat: (m,), shifted: (n, m + 1)}.get(case[0], (n, m)), (n,)]
    shapes = [shape if len(b.shape) == len(shape) else (n,) for b, shape in zip(fresh, shapes, strict=False)]
    if case[0] is two_dtypes:
        shapes = [(n, m), (n, m)]
    outputs = [placed(shape, b.dtype, start) for b, shape in zip(fresh, shapes, strict=True)]
    batch.call(library, CASES.index(case), inputs, [array for array, _, _ in outputs])
    for array, whole, first in outputs:
        assert (whole[:first] == 0xA5).all()
        assert (whole[first + array.nbytes :] == 0xA5).all()
    return [array.tobytes() for array, _, _ in outputs] + [inputs[0].tobytes()]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0].__name__}-{c[1]}")
@pytest.mark.parametrize("start", [0, 1, 3, 7, 12, 15])
def test_the_same_bits_wherever_results_lie(case, start, libraries, batch):
    past, never = libraries
    for size in SIZES:
        plain = run(batch, never, case, size, 0)
        assert run(batch, past, case, size, start) == run(batch, never, case, size, start) == plain


@pytest.mark.slow(1)
def test_a_result_that_lies_between_elements(libraries, batch):
    """None of its vectors can be aligned."""
    past, never = libraries
    x, w = np.arange(300, dtype=np.float32).reshape(3, 100), np.arange(100, dtype=np.float32)
    contents = []
    for library in (past, never):
        whole = np.zeros(3 * 400 + 128, np.uint8)
        first = -whole.ctypes.data % 64 + 2
        outputs = [np.ndarray((3, 100), np.float32, whole, first)]
        batch.call(library, CASES.index((scaled, "float32")), [x, w], outputs)
        contents.append(whole.tobytes()[first : first + 1200])
    assert contents[0] == contents[1]
    assert contents[0] == (x * 3 + w).tobytes()


@pytest.mark.slow(1)
def test_the_instruction_is_there(libraries):
    text = subprocess.run(["objdump", "-d", libraries[0]], check=True, capture_output=True, text=True).stdout
    assert "movnt" in text
    assert "sfence" in text


@pytest.mark.parametrize("function", [*PAST, *NOT])
def test_which_stores_may(function):
    """Only those of results that are written once and never read."""
    source = source_of(schedule(typed(function, "float32")), instruction_sets.BEST, "f")
    assert ("polyop_streaming_fence();" in source) == (function in PAST)


@pytest.mark.parametrize("columns", [4096, 4099])
def test_a_large_result(columns):
    x = np.random.default_rng(1).normal(size=(2500, columns)).astype(np.float32)
    w = np.random.default_rng(2).normal(size=columns).astype(np.float32)
    op = Custom(with_sum, func_type="akg")
    product, sums = op(x, w)
    np.testing.assert_array_equal(product, x * w)
    np.testing.assert_allclose(sums, (x / np.float32(7)).sum(1), rtol=1e-3, atol=1e-3)
    again, same = op(x, w)
    np.testing.assert_array_equal(again, product)
    np.testing.assert_array_equal(same, sums)  # in whatever memory they lie
