# ruff: noqa: F821 - kernels, whose words are no names here
"""Register transpose: recurrences along rows with one row in each lane; inputs and results are transposed."""

import functools

import numpy as np
import pytest

import instruction_sets
from polyop.loops.emit.printer import source as source_of
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.pipeline import schedule

SIZES = ((0, 5), (5, 0), (1, 1), (1, 40), (3, 2), (8, 16), (9, 17), (16, 33), (21, 15), (40, 50))


def forward(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        s = 0.5
        for j in range(x.shape[1]):
            s = s * 0.9 + x[i, j]
            y[i, j] = s
    return y


def backward(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        s = 0.5
        for j in range(x.shape[1] - 1, -1, -1):
            s = s * 0.9 + x[i, j]
            y[i, j] = s
    return y


def both_ways(x):
    y = output_tensor(x.shape, x.dtype)
    z = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        s = 0.5
        for j in range(x.shape[1]):
            s = s * 0.9 + x[i, j]
            y[i, j] = s
            z[i, x.shape[1] - 1 - j] = s - 1
    return y, z


def beside(x):
    y = output_tensor((x.shape[0], x.shape[1] + 2), x.dtype)
    for i in range(x.shape[0]):
        s = 0.0
        y[i, 0] = -1
        y[i, x.shape[1] + 1] = 7
        for j in range(x.shape[1]):
            s = s * 0.5 + x[i, j]
            y[i, j + 1] = s
    return y


def in_layers(x):
    y = output_tensor((x.shape[0], 2, x.shape[1]), x.dtype)
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s = s * 0.5 + x[i, j]
            y[i, 1, j] = s
        for j in range(x.shape[1]):
            s = s * 0.5 - x[i, j]
            y[i, 0, j] = s
    return y


def wide(x):
    y = output_tensor(x.shape, "float64")
    z = output_tensor(x.shape, "int32")
    for i in range(x.shape[0]):
        s = 0.0
        n = 0
        for j in range(x.shape[1]):
            s = s * 0.5 + x[i, j]
            n = n * 3 + 1 if x[i, j] > 0 else 0
            y[i, j] = s / 3
            z[i, j] = n
    return y, z


def from_the_third(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(3, x.shape[1]):
            s = s * 0.5 + x[i, j - 3]
            y[i, j] = s
    return y


def solved(x):
    """Elimination along a row and substitution back."""
    y = output_tensor(x.shape, x.dtype)
    c = allocate(x.shape, x.dtype)
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            c[i, j] = 1 / (4 - s)
            s = c[i, j] * x[i, j]
        for j in range(x.shape[1] - 1, -1, -1):
            s = x[i, j] - c[i, j] * s
            y[i, j] = s
    return y


def on_top(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s = s * 0.5 + x[i, j]
            y[i, j] += s
    return y


def read_back(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i, 0] = 1
        for j in range(1, x.shape[1]):
            y[i, j] = y[i, j - 1] * 0.5 + x[i, j]
    return y


def read_further_back(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(2, x.shape[1]):
            y[i, j] = y[i, j - 2] * 0.5 + x[i, j]
    return y


def twice(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1] - 1):
            s = s * 0.5 + x[i, j]
            y[i, j] = s
            y[i, j + 1] = -s
    return y


def sometimes(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s = s * 0.5 + x[i, j]
            if s > 0:
                y[i, j] = s
    return y


def every_second(x):
    y = output_tensor((x.shape[0], 2 * x.shape[1]), x.dtype)
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s = s * 0.5 + x[i, j]
            y[i, 2 * j] = s
    return y


STORED = {
    forward: 1,
    backward: 1,
    both_ways: 2,
    beside: 1,
    in_layers: 2,
    wide: 2,
    from_the_third: 1,
    solved: 1,
    read_back: 1,
}
NOT = (on_top, read_further_back, twice, sometimes, every_second)
CASES = [(f, d) for f in (*STORED, *NOT) for d in ("float32", "float64")] + [(forward, "float16")]
pytestmark = pytest.mark.filterwarnings("ignore::polyop.UninitialisedWarning")


@functools.cache
def typed(function, dtype="float32"):
    return parse(function, [(dtype, 2)], {})


@pytest.fixture(scope="session", params=instruction_sets.EACH)
def compiled(request, batch):
    """Return a function from a kernel to its operator."""
    path = batch.build(batch.text([typed(*c) for c in CASES], request.param), "-DPOLYOP_GRAIN=1")
    return functools.cache(lambda f, d: batch.bound(f, [(d, ["n", "m"], "")], {}, path, CASES.index((f, d))))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0].__name__}-{c[1]}")
def test_results(case, compiled, batch):
    function, dtype = case
    rough = {"float16": 5e-3, "float32": 3e-5, "float64": 1e-13}[dtype]
    for size in SIZES:
        x = np.random.default_rng(size).normal(size=size).astype(dtype)
        if function is read_back and size[1] == 0:
            continue  # there is no first column
        expected = interpret(typed(*case), [x], {})
        for threads in (1, 3):
            with batch.threads(threads):
                results = compiled(function, dtype)(x)
            for one, other in zip(expected, results, strict=True):
                np.testing.assert_allclose(other, one, rtol=rough, atol=rough)


@pytest.mark.parametrize("function", [*STORED, *NOT])
def test_which_stores_are_transposed(function):
    """Only buffers with one plain, unconditional store of each element, which the loop does not read."""
    source = source_of(schedule(typed(function)), "avx512", "f")
    assert source.count("polyop_untranspose_") == STORED.get(function, 0)


@pytest.mark.parametrize("function", [forward, solved])
def test_a_body_with_strips_is_there_once(function):
    source = source_of(schedule(typed(function)), "avx512", "f")
    assert source.count("gather_f32") == source.count("scatter_f32") == 0
    assert source.count("_part = min_i64(") == 1
