# ruff: noqa: F821 - kernels, whose words are no names here
"""Unroll-and-jam: sums over several rows at once, equal to the last bit to those row by row; prefetching of rows."""

import functools
import re

import numpy as np
import pytest

from polyop.core.errors import KernelError
from polyop.loops.emit.printer import source as source_of
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.pipeline import schedule
from polyop.loops.targets import isa


def total(x, w):
    y = output_tensor((x.shape[1],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j] += x[i, j]
    return y


def weighted(x, w):
    y = output_tensor((x.shape[1],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j] += x[i, j] * w[i]
    return y


def next_row(x, w):
    y = output_tensor((x.shape[1],), x.dtype)
    for i in range(x.shape[0] - 1):
        for j in range(x.shape[1]):
            y[j] += x[i + 1, j] - x[i, j] * 0.3
    return y


def upwards(x, w):
    y = output_tensor((x.shape[1],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j] += x[x.shape[0] - 1 - i, j] / 3 + i
    return y


def every_second(x, w):
    y = output_tensor((x.shape[1],), x.dtype)
    for i in range(x.shape[0] // 2):
        for j in range(x.shape[1]):
            y[j] += x[2 * i + 1, j] * x[i, j]
    return y


def from_three(x, w):
    y = output_tensor((x.shape[1],), x.dtype)
    for i in range(3, x.shape[0]):
        for j in range(1, x.shape[1]):
            y[j] += x[i, j - 1] * 0.7
    return y


def whole_numbers(x, w):
    y = output_tensor((x.shape[1],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j] += i * 3 - j
    return y


def two_sums(x, w):
    y = output_tensor((x.shape[1],), x.dtype)
    z = output_tensor((x.shape[1],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j] += x[i, j]
            z[j] += x[i, j] * x[i, j]
    return y, z


def projected(x, w):
    """Each row times its own product with the weights, as in a product with a matrix and its transpose."""
    y = output_tensor((x.shape[1],), x.dtype)
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s += x[i, j] * x[0, j]
        for j in range(x.shape[1]):
            y[j] += x[i, j] * s
    return y


def normalised(x, w):
    y = output_tensor((x.shape[1],), x.dtype)
    z = output_tensor((x.shape[1],), x.dtype)
    for i in range(x.shape[0]):
        s = 0.25
        for j in range(x.shape[1]):
            s += x[i, j] * x[i, j]
        t = s * w[i]
        for j in range(x.shape[1]):
            u = x[i, j] * t
            y[j] += u
            z[j] += u * x[i, j]
    return y, z


def added_twice(x, w):
    y = output_tensor((x.shape[1],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j] += x[i, j]
            y[j] += x[i, j] * w[i]
    return y


def with_total(x, w):
    """The total is a scalar of the whole loop, not of a row."""
    y = output_tensor((x.shape[1],), x.dtype)
    z = output_tensor((1,), x.dtype)
    t = 0.0
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s += x[i, j]
        t += s
        for j in range(x.shape[1]):
            y[j] += x[i, j] * s
    z[0] = t
    return y, z


def stored_too(x, w):
    y = output_tensor((x.shape[1],), x.dtype)
    z = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s += x[i, j]
        z[i] = s
        for j in range(x.shape[1]):
            y[j] += x[i, j] * s
    return y, z


def triangular(x, w):
    y = output_tensor((x.shape[1],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(min(i, x.shape[1])):
            y[j] += x[i, j] * 1.1
    return y


def reads_the_sum(x, w):
    y = output_tensor((x.shape[1],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j] += x[i, j] + y[j] * 0.1
    return y


def subtracted(x, w):
    y = output_tensor((x.shape[1],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j] -= x[i, j] * w[i]
    return y


def maxima(x, w):
    y = output_tensor((x.shape[1],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j] = max(y[j], x[i, j])
    return y


def chosen(x, w):
    y = output_tensor((x.shape[1],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j] += x[i, j] if x[i, j] > w[i] else 0
    return y


def slow(x, w):
    y = output_tensor((x.shape[1],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j] += exp(x[i, j])
    return y


def one(x, w):
    y = output_tensor((1,), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[0] += x[i, j]
    return y


def picks(x, w):
    y = output_tensor((x.shape[1],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j] += x[(i * i) % x.shape[0], j]
    return y


def layers(x, w):
    y = output_tensor((2, x.shape[1]), x.dtype)
    for k in range(2):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                y[k, j] += x[i, j] * w[i] + k
    return y


def on_top(x, w):
    for i in range(w.shape[0]):
        for j in range(x.shape[1]):
            x[0, j] += w[i] * 0.3
    return x


def on_top_of_read(x, w):
    for i in range(x.shape[0] - 1):
        for j in range(x.shape[1]):
            x[0, j] += x[i + 1, j]
    return x


def backwards(x, w):
    y = output_tensor((x.shape[1],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[x.shape[1] - 1 - j] += x[i, j] * w[i]
    return y


def wide(x, w):
    y = output_tensor((x.shape[1],), "float64")
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j] += x[i, j] * w[i]
    return y


def norms(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s += x[i, j] * x[i, j]
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * s
    return y


def norms_in_place(x, w):
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s += x[i, j] * x[i, j]
        for j in range(x.shape[1]):
            x[i, j] = x[i, j] + s
    return x


def three_passes(x, w):
    y = output_tensor(x.shape, x.dtype)
    for k in range(2):
        for i in range(x.shape[0] - 1):
            s = w[i]
            for j in range(x.shape[1]):
                s = max(s, x[i + 1, j])
            t = 0.0
            for j in range(x.shape[1]):
                t += x[i + 1, j] - s
            for j in range(x.shape[1]):
                y[i + 1, j] = x[i + 1, j] * t + k
    return y


def triangular_passes(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(min(i, x.shape[1])):
            s += x[x.shape[0] - 1 - i, j] * x[i, j]
        for j in range(min(i, x.shape[1])):
            y[i, j] = x[i, j] * s + x[x.shape[0] - 1 - i, j]
    return y


def place_inside(x, w):
    y = output_tensor(x.shape, x.dtype)
    z = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0] // 2):
        for j in range(x.shape[1]):
            k = i
            k += (i * 7) % 2
            y[i, j] = x[k + i, j] * k
        for j in range(x.shape[1]):
            k = i
            k += (i * 7) % 2
            z[i, j] = x[k + i, j] + x[i, j]
    return y, z


def place_between(x, w):
    y = output_tensor(x.shape, x.dtype)
    z = output_tensor(x.shape, x.dtype)
    k = 0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[(i + k) % x.shape[0], j] * k
        k = k + i
        for j in range(x.shape[1]):
            z[i, j] = x[(i + k) % x.shape[0], j] + 1
        for j in range(x.shape[1]):
            z[i, j] = z[i, j] + x[(i + k) % x.shape[0], j] + 1
    return y, z


def place_of_condition(x, w):
    y = output_tensor(x.shape, x.dtype)
    z = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s += x[i, j]
        for j in range(x.shape[1]):
            k = 0
            if w[i] > 0:
                k = 1
            if i + k < x.shape[0]:
                y[i, j] = x[i + k, j] * s
            z[i, j] = x[i, j] - y[i, j]
    return y, z


def divided_place(x, w):
    """In the row after the last one the place would be a remainder of a division by zero."""
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s += x[(i * 5) % (x.shape[0] - i), j]
        for j in range(x.shape[1]):
            y[i, j] = x[(i * 5) % (x.shape[0] - i), j] * s
    return y


def place_of_row(x, w):
    y = output_tensor(x.shape, x.dtype)
    z = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0] // 2):
        k = i
        k += (i * 7) % 2
        for j in range(x.shape[1]):
            y[i, j] = x[k + i, j] * k
        for j in range(x.shape[1]):
            z[i, j] = x[k + i, j] + x[i, j]
    return y, z


JAMMED = dict.fromkeys((total, weighted, next_row, every_second, from_three, subtracted, backwards, wide), 8)
JAMMED |= dict.fromkeys((two_sums, projected, normalised), 2)
SINGLY = (
    with_total,
    added_twice,
    stored_too,
    triangular,
    reads_the_sum,
    maxima,
    chosen,
    slow,
    one,
    picks,
    on_top,
    on_top_of_read,
    upwards,
)
SINGLY += (whole_numbers, layers)
PASSES = (
    norms,
    norms_in_place,
    three_passes,
    triangular_passes,
    place_inside,
    place_between,
    place_of_condition,
)
PASSES += (divided_place, place_of_row)
ALL = (*JAMMED, *SINGLY, *PASSES)
CASES = [*((f, "float32") for f in ALL), *((f, d) for f in JAMMED for d in ("float64", "float16"))]
SIZES = ((0, 3), (1, 5), (3, 0), (4, 1), (5, 70), (8, 16), (11, 33), (29, 100), (64, 7))


@functools.cache
def typed(function, dtype="float32"):
    return parse(function, [(dtype, 2), (dtype, 1)], {})


def at_once(source):
    """Return how many iterations of each loop are done at once, if it is more than one."""
    return [int(n) for _, n in re.findall(r"for \(; (\w+) \+ (\d+) <= end; \1 \+= \2\)", source)]


def source(function, dtype="float32"):
    return source_of(schedule(typed(function, dtype)), isa.available()[0], "f")


@pytest.fixture(scope="session")
def compiled(batch):
    """Return a function from a kernel to its operator, with several rows at once or row by row."""
    kernels, target = [typed(*c) for c in CASES], isa.available()[0]
    paths = {True: batch.build(batch.text(kernels, target), "-DPOLYOP_GRAIN=1")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POLYOP_SKIP_PASSES", "unroll_and_jam")
        paths[False] = batch.build(batch.text(kernels, target), "-DPOLYOP_GRAIN=1")

    @functools.cache
    def of(function, dtype, several):
        tensors = [(dtype, ["n", "m"], ""), (dtype, ["n"], "")]
        return batch.bound(function, tensors, {}, paths[several], CASES.index((function, dtype)))

    return of


def arrays(n, m, dtype):
    random = np.random.default_rng([n, m])
    return [random.normal(size=(n, m)).astype(dtype), random.normal(size=n).astype(dtype)]


@pytest.mark.slow
@pytest.mark.parametrize(("function", "dtype"), CASES)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_results(function, dtype, size, compiled, batch):
    inputs = arrays(*size, dtype)
    try:
        expected = interpret(typed(function, dtype), [a.copy() for a in inputs], {})
    except IndexError:
        expected = None  # there is no first row
    rough = 5e-3 if dtype == "float16" else 3e-5
    for threads in (1, 2, 5):
        with batch.threads(threads):
            several, singly = (compiled(function, dtype, flag) for flag in (True, False))
            if expected is None:
                with pytest.raises(KernelError):
                    several(*(a.copy() for a in inputs))
                continue
            results, others = (f(*(a.copy() for a in inputs)) for f in (several, singly))
        for one, other, third in zip(expected, results, others, strict=True):
            most = 1 + np.abs(one).max(initial=0)
            np.testing.assert_allclose(other, one, rtol=rough, atol=rough * most)
            if function in JAMMED:
                np.testing.assert_array_equal(other, third, strict=True)  # to the last bit


@pytest.mark.slow
@pytest.mark.parametrize("function", [total, weighted, subtracted, backwards])
def test_the_order_is_that_of_the_rows(function, compiled, batch):
    """A large number absorbs the sums before it, and the sums after its negative are exact: the order shows."""
    x, w = np.ones((11, 37), np.float32), np.ones(11, np.float32)
    x[5], x[6] = 2.0**30, -(2.0**30)
    with batch.threads(1):
        (result,) = compiled(function, "float32", True)(x, w)
    np.testing.assert_array_equal(np.abs(result), 4)


@pytest.mark.slow
@pytest.mark.parametrize("value", [np.nan, np.inf, -0.0])
def test_special_values(value, compiled, batch):
    x, w = np.full((9, 21), value, np.float32), np.ones(9, np.float32)
    x[3, ::2] = 1
    with batch.threads(2):
        (result,), (other,) = (compiled(total, "float32", flag)(x, w) for flag in (True, False))
    np.testing.assert_array_equal(result.view(np.int32), other.view(np.int32))


@pytest.mark.slow(20)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("function", ALL)
def test_what_is_done(function, dtype):
    jammed = function in JAMMED and (dtype != "float16" or function is wide)
    assert at_once(source(function, dtype)) == ([JAMMED[function]] if jammed else [])


@pytest.mark.parametrize("function", PASSES)
def test_the_last_pass_over_a_row_prefetches_the_next(function):
    """No row is prefetched that is written, is in another tensor, or is unknown before its iteration."""
    asks = re.findall(r"polyop_fetch_later\(x, .*\(i \+ 1\)", source(function))
    expected = {norms: 1, three_passes: 1, triangular_passes: 2, place_of_condition: 1}
    assert len(asks) == expected.get(function, 0)
