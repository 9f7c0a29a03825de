# ruff: noqa: F821 - kernels, whose words are no names here
"""Sums over a row for each tap of a window, as the gradient of a filter's weights: lanes along the row."""

import numpy as np
import pytest

from polyop.loops.frontend.parse import parse
from polyop.loops.ir.grammar import For, Store, statements
from polyop.loops.ir.interpret import interpret
from polyop.loops.pipeline import schedule
from polyop.loops.targets import isa


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


@pytest.fixture(scope="module", params=isa.available())
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
