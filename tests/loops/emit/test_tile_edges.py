# ruff: noqa: F821 - kernels, whose words are no names here
"""Register tiles of contractions whose rows have different ranges: triangles and bands."""

import functools
import re

import numpy as np
import pytest

from polyop import Custom
from polyop.core.errors import KernelError
from polyop.loops.emit.c import row_panels
from polyop.loops.emit.printer import source as source_of
from polyop.loops.frontend.parse import parse
from polyop.loops.pipeline import schedule

pytestmark = pytest.mark.filterwarnings("ignore::polyop.UninitialisedWarning")


def upper(a, b):
    c = output_tensor((a.shape[1], b.shape[1]), a.dtype)
    for i in range(a.shape[1]):
        for j in range(i, b.shape[1]):
            for k in range(a.shape[0]):
                c[i, j] += a[k, i] * b[k, j]
    return c


def lower(a, b):
    c = output_tensor((a.shape[1], b.shape[1]), a.dtype)
    for i in range(a.shape[1]):
        for j in range(min(i + 1, b.shape[1])):
            for k in range(a.shape[0]):
                c[i, j] += a[k, i] * b[k, j]
    return c


def strictly_lower(a, b):
    c = output_tensor((b.shape[1], b.shape[1]), a.dtype)
    for i in range(b.shape[1]):
        for j in range(i):
            for k in range(a.shape[0]):
                c[i, j] += b[k, i] * b[k, j]
    return c


def band(a, b):
    c = output_tensor((a.shape[1], b.shape[1]), a.dtype)
    for i in range(a.shape[1]):
        for j in range(max(i - 5, 0), min(i + 40, b.shape[1])):
            for k in range(a.shape[0]):
                c[i, j] += a[k, i] * b[k, j]
    return c


def mirrored(a, b):
    c = output_tensor((b.shape[1], b.shape[1]), a.dtype)
    for i in range(b.shape[1]):
        for j in range(i, b.shape[1]):
            s = 0.0
            for k in range(a.shape[0]):
                s += b[k, i] * b[k, j]
            c[i, j] = s + a[0, 0]
            c[j, i] = c[i, j]
    return c


def two_sums(a, b):
    c = output_tensor((b.shape[1], b.shape[1]), a.dtype)
    for i in range(b.shape[1]):
        for j in range(i + 1, b.shape[1]):
            s = 1.0
            t = 100.0
            for k in range(b.shape[0]):
                s += b[k, i] * b[k, j]
                t = min(t, b[k, j] - b[k, i])
            c[i, j] = s * 8 + t
    return c


def by_rows(a, b):
    c = output_tensor((a.shape[1], b.shape[1]), a.dtype)
    for i in range(a.shape[1]):
        for j in range(i, b.shape[1]):
            for k in range(b.shape[0]):
                c[i, j] += a[k, i] * b[k, j - i]
    return c


SIZES = [
    (3, 1, 1),
    (2, 5, 7),
    (4, 6, 32),
    (3, 7, 33),
    (5, 40, 31),
    (1, 64, 64),
    (7, 70, 70),
    (2, 13, 130),
    (0, 3, 40),
]


@functools.cache
def operator(function):
    return Custom(function, func_type="hybrid")


@pytest.mark.slow(4)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("function", [upper, lower, strictly_lower, band, mirrored, two_sums, by_rows])
def test_equal_to_the_function_run_as_python(function, sizes, dtype):
    compare(operator(function), function, sizes, dtype)


def compare(run, function, sizes, dtype):
    k, m, n = sizes
    if function is mirrored and k == 0:
        k = 1  # it reads an element
    random = np.random.default_rng([k, m, n])
    a, b = (random.integers(-4, 5, (k, x)).astype(dtype) for x in (m, n))
    np.testing.assert_array_equal(run(a, b), reference(function, a, b))


@pytest.mark.slow(4)
@pytest.mark.parametrize("rows", [1, 12, 100])
@pytest.mark.parametrize("function", [upper, lower, band, two_sums])
def test_rows_are_packed_some_at_a_time(function, rows, monkeypatch):
    """With many strips of lanes; a part of the rows has no lanes."""
    run = Custom(function, func_type="hybrid")
    monkeypatch.setattr(row_panels, "MOST_BYTES", rows * 3 * 8)
    for sizes in [(3, 20, 700), (9, 705, 700), (1, 5, 1300), (0, 20, 700)]:
        compare(run, function, sizes, "float64")


def reference(function, a, b):
    """Return the expected result, computed with NumPy."""
    rows, columns = a.shape[1], b.shape[1]
    i, j = np.ogrid[:rows, :columns]
    if function is mirrored:
        return b.T @ b + a[0, 0]
    if function is two_sums:
        apart = (b[:, None, :] - b[:, :, None]).min(0, initial=100)
        return np.triu((1 + b.T @ b) * 8 + apart, 1)
    if function is strictly_lower:
        return np.tril(b.T @ b, -1)
    if function is by_rows:
        whole = a.T @ b
        shifted = np.zeros_like(whole)
        for row in range(min(rows, columns)):
            shifted[row, row:] = whole[row, : columns - row]
        return shifted
    mask = {"upper": j >= i, "lower": j <= i, "band": (j >= i - 5) & (j < i + 40)}[function.__name__]
    return np.where(mask, a.T @ b, 0).astype(a.dtype)


def text(function):
    return source_of(schedule(parse(function, [("float64", 2), ("float64", 2)], {})), "avx512", "f")


@pytest.mark.parametrize("function", [upper, strictly_lower, mirrored])
def test_a_row_at_the_edge_takes_all_vectors_at_once(function):
    edge = re.search(r"for \(int64_t r = .*?\n((?:.*\n)*?) *\}", text(function))
    assert edge is not None
    assert len(re.findall(r"_u3 = \{0\}", edge[1])) >= 1


@pytest.mark.parametrize("function", [mirrored, two_sums])
def test_rows_at_the_edge_have_their_sums_together(function):
    assert re.search(r"if \(i_part\) \{\n.*panel;\n(.*\n)*? *f64v8 s_r5_u3 = ", text(function))


def test_rows_that_follow_one_another_are_packed_or_prefetched():
    source = text(upper)
    assert set(re.findall(r"a0__panel \? [^:]* : &(\w+)\[", source)) == {"a"}
    assert "polyop_fetch(a0_ + 5, 8 * a0__step * (int64_t)sizeof(f64));" in source


def test_an_index_beyond_is_an_error_at_every_row():
    with pytest.raises(KernelError, match="leaves dimension 0 of b, which has size 2"):
        operator(upper)(np.ones((3, 2)), np.ones((2, 4)))


def test_the_first_of_several_errors_is_reported():
    def two(x, y):
        z = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            z[i] = y[i]
        for i in range(x.shape[0]):
            z[i] += y[i + 1]
        return z

    both = Custom(two, func_type="hybrid")
    first = two.__code__.co_firstlineno + 3
    with pytest.raises(KernelError, match=f"line {first}: .* of y, which has size 3"):
        both(np.ones(4), np.ones(3))
    with pytest.raises(KernelError, match=f"line {first + 2}: .* of y, which has size 4"):
        both(np.ones(4), np.ones(4))
    np.testing.assert_array_equal(both(np.ones(4), np.ones(5)), np.full(4, 2.0))


def test_checks_that_others_imply_are_left_out():
    def many(x, y):
        z = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            z[i] = y[i]
        for i in range(1, x.shape[0]):
            z[i] += y[i] * y[i - 1]
        return z

    source = source_of(schedule(parse(many, [("float64", 1), ("float64", 1)], {})), "avx512", "f")
    assert len(re.findall(r"polyop_misfit\(", source)) == 1
