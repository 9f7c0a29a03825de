# ruff: noqa: F821 - kernels, whose words are no names here
"""Sums over a row for each tap of a window, as the gradient of a filter's weights: lanes along the row."""

import numpy as np
import pytest

import instruction_sets
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.grammar import For, Store, statements
from polyop.loops.ir.interpret import interpret
from polyop.loops.pipeline import schedule


def clamped(x, g, taps):
    w = output_tensor(taps.shape, x.dtype)
    for k in range(taps.shape[0]):
        w[k] = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(taps.shape[0]):
                w[k] += g[i, j] * x[i, min(max(j + k - taps.shape[0] // 2, 0), x.shape[1] - 1)]
    return w


def conditional(x, g, taps):
    w = output_tensor(taps.shape, x.dtype)
    for k in range(taps.shape[0]):
        w[k] = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(taps.shape[0]):
                w[k] += g[i, j] * (x[i, j + k - 1] if j + k >= 1 and j + k <= x.shape[1] else 0.0)
    return w


def inside(x, g, taps):
    w = output_tensor(taps.shape, x.dtype)
    for k in range(taps.shape[0]):
        w[k] = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1] - taps.shape[0] + 1):
            for k in range(taps.shape[0]):
                w[k] += g[i, j] * x[i, j + k]
    return w


KERNELS = (clamped, conditional, inside)
SIZES = ((3, 70, 5), (2, 4, 7), (1, 1, 1), (4, 33, 2), (0, 5, 3), (2, 9, 0))
"""Rows, columns, taps: the window is shorter than a row, longer, or empty."""


def typed(function):
    return parse(function, [("float32", 2), ("float32", 2), ("float32", 1)], {})


@pytest.mark.parametrize("function", KERNELS)
def test_lanes_are_along_the_row_and_threads_share_the_rows(function):
    program = schedule(typed(function))
    loops = {s.var: s for s in statements(program.kernel.body) if isinstance(s, For)}
    assert program.plan.private["i"] == (("w", "+"),)
    assert "j" in program.plan.vector
    assert not any(isinstance(s, Store) for s in statements(loops["j"].body)), "the sum is in a register"


@pytest.fixture(scope="session", params=instruction_sets.EACH)
def compiled(request, batch):
    """Return the operators by kernel."""
    path = batch.build(batch.text([typed(f) for f in KERNELS], request.param), "-DPOLYOP_GRAIN=1")
    rows = [("float32", ["i", "j"], ""), ("float32", ["i", "j"], ""), ("float32", ["k"], "")]
    return {f: batch.bound(f, rows, {}, path, k) for k, f in enumerate(KERNELS)}


@pytest.mark.parametrize("function", KERNELS)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_values(function, sizes, compiled, batch):
    rows, columns, taps = sizes
    draw = np.random.default_rng(sizes)
    x, g = (draw.integers(-3, 4, (rows, columns)).astype("float32") for _ in "xg")
    arrays = [x, g, np.zeros(taps, "float32")]
    (expected,) = interpret(typed(function), arrays, {})
    for threads in (1, 3):
        with batch.threads(threads):
            np.testing.assert_array_equal(compiled[function](*arrays)[0], expected)


def causal(x, w, g):
    """The shift of the border contains the window's own size."""
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            s = 0.0
            for k in range(w.shape[0]):
                s += w[k] * x[i, max(min(j + k - w.shape[0] + 1, x.shape[1] - 1), 0)]
            y[i, j] = s
    return y


def panels(x, unused, g):
    """No access adds both loops: one is no window of the other."""
    y = output_tensor((x.shape[1],), x.dtype)
    for c in range(x.shape[1]):
        s = 0.0
        for j in range(x.shape[0] - x.shape[1]):
            s += x[j + x.shape[1], c]
        y[c] = s
    return y


@pytest.mark.parametrize(("function", "ranks", "lanes"), [(causal, (2, 1, 1), "j"), (panels, (2, 1, 1), "c")])
def test_what_is_no_window_keeps_its_lanes(function, ranks, lanes):
    program = schedule(parse(function, [("float32", rank) for rank in ranks], {}))
    assert lanes in program.plan.vector


def sums_that_outlive_their_loop(x, z):
    y, q = output_tensor(x.shape, x.dtype), output_tensor((1,), x.dtype)
    s = -1.0
    for i in range(x.shape[0]):
        y[i] = x[i - 3] if i >= 3 else 0.0
        if i == z.shape[0]:
            s = 0.0
            for j in range(x.shape[0]):
                s += x[j + i] if j + i < x.shape[0] else 0.0
    q[0] = s
    return y, q


def test_a_loop_around_a_split_sum_that_is_read_later_is_not_split():
    kernel = parse(sums_that_outlive_their_loop, [("float64", 1), ("float64", 1)], {})
    arrays = [np.arange(1.0, 7.0), np.zeros(1)]
    for expected, result in zip(
        interpret(kernel, arrays, {}), interpret(schedule(kernel).kernel, arrays, {}), strict=True
    ):
        np.testing.assert_array_equal(result, expected)
    assert interpret(kernel, arrays, {})[1] == 20.0
