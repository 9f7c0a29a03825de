# ruff: noqa: F821 - kernels, whose words are no names here
"""Block distribution: loops whose contractions get loops of their own block by block, and those that stay."""

import numpy as np
import pytest

from loop_samples.rows_of_products import compiled, scalar_between, scalar_bound, typed
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.verify import violations
from polyop.loops.passes.block_distribution import ROWS
from polyop.loops.pipeline import schedule


def row_between(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    p = allocate((k.shape[0],), q.dtype)
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            p[j] = 0
            for d in range(k.shape[1]):
                p[j] += q[i, d] * k[j, d]
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, d] += p[j] * k[j, d]
    return y


def two_layers(q, k):
    y = output_tensor((q.shape[0], k.shape[0]), q.dtype)
    h = allocate((k.shape[1],), q.dtype)
    for i in range(q.shape[0]):
        for d in range(k.shape[1]):
            h[d] = 1
            for j in range(k.shape[0]):
                h[d] += q[i, j] * k[j, d]
        total = 0.0
        for d in range(k.shape[1]):
            h[d] = max(h[d], 0.0)
            total += h[d]
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, j] += h[d] * k[j, d]
        for j in range(k.shape[0]):
            y[i, j] = y[i, j] - total
    return y


def sums_over_rows(q, k):
    y = output_tensor((q.shape[0],), q.dtype)
    z = output_tensor((k.shape[0], k.shape[1]), q.dtype)
    p = allocate((k.shape[0],), q.dtype)
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            p[j] = 0
            for d in range(k.shape[1]):
                p[j] += q[i, d] * k[j, d]
        for j in range(k.shape[0]):
            y[i] += p[j]
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                z[j, d] += p[j] * q[i, d]
    return y, z


def batches(q, k):
    y = output_tensor((3, q.shape[0], k.shape[1]), q.dtype)
    p = allocate((k.shape[0],), q.dtype)
    for b in range(3):
        for i in range(q.shape[0]):
            for j in range(k.shape[0]):
                p[j] = q[i, j] - b
            for j in range(k.shape[0]):
                for d in range(k.shape[1]):
                    y[b, i, d] += p[j] * k[j, d]
    return y


def triangle(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    p = allocate((k.shape[0],), q.dtype)
    for i in range(q.shape[0]):
        for j in range(min(i + 1, k.shape[0])):
            p[j] = q[i, 0] - j
        for j in range(min(i + 1, k.shape[0])):
            for d in range(k.shape[1]):
                y[i, d] += p[j] * k[j, d]
    return y


def begins_later(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    p = allocate((k.shape[0],), q.dtype)
    for i in range(2, q.shape[0]):
        for j in range(k.shape[0]):
            p[j] = q[i, j] + q[i - 2, j]
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, d] += p[j] * k[j, d]
    return y


def state(q, k):
    """All iterations share the row h, and each changes it."""
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    h = allocate((k.shape[0],), q.dtype)
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            h[j] = q[i, j] - h[j]
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, d] += h[j] * k[j, d]
    return y


def carried_scalar(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    m = 0.0
    for i in range(q.shape[0]):
        m = q[i, 0] - m
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, d] += (q[i, j] - m) * k[j, d]
    return y


def fed_back(q, k):
    y = output_tensor((q.shape[0] + 1, k.shape[1]), q.dtype)
    p = allocate((k.shape[0],), q.dtype)
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            p[j] = q[i, 0] - y[i, 0]
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i + 1, d] += p[j] * k[j, d]
    return y


def hinted(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    p = allocate((k.shape[0],), q.dtype)
    for i in serial(q.shape[0]):
        for j in range(k.shape[0]):
            p[j] = q[i, 0] - j
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, d] += p[j] * k[j, d]
    return y


BLOCKS = (row_between, scalar_between, two_layers, sums_over_rows, batches, triangle, begins_later)
WHOLE = (state, carried_scalar, scalar_bound, fed_back, hinted)
CASES = [*((f, "float64") for f in (*BLOCKS, *WHOLE)), (row_between, "float16"), (row_between, "int32")]
SIZES = (
    (0, 3, 4),
    (4, 0, 3),
    (3, 4, 0),
    (1, 1, 1),
    (9, 17, 20),
    (ROWS, 3, 2),
    (ROWS + 1, 2, 40),
    (100, 35, 7),
)


@pytest.fixture(scope="module")
def operators(batch):
    return compiled(batch, CASES)


def arrays(n, m, d, dtype):
    """Return inputs of -1, 0 and 1: sums are exact in any order, also in half types."""
    random = np.random.default_rng([n, m, d])
    first = random.integers(-1, 2, (n, max(m, d, 1)))
    return [first.astype(dtype), random.integers(-1, 2, (m, d)).astype(dtype)]


@pytest.mark.parametrize(("function", "dtype"), CASES)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_results_are_the_authors(function, dtype, size, operators, batch):
    if 0 in size[1:] and function in (scalar_between, fed_back):
        pytest.skip("the kernel reads the first column")
    inputs = arrays(*size, dtype)
    expected = interpret(typed(function, dtype), inputs, {})
    for threads in (1, 3):
        with batch.threads(threads):
            results = operators(function, dtype)(*inputs)
        for one, other in zip(expected, results, strict=True):
            np.testing.assert_allclose(np.float64(other), np.float64(one), rtol=1e-12)


@pytest.mark.parametrize("function", [*BLOCKS, *WHOLE])
def test_which_loops_are_in_blocks(function):
    program = schedule(typed(function))
    assert violations(program.kernel) == []
    is_blocked = any(note.kind == "block_distribution" for note in program.notes)
    assert is_blocked == (function in BLOCKS)


def test_a_loop_that_the_schedule_names_stays():
    from polyop import Schedule

    program = schedule(typed(row_between), steps=Schedule().parallel("i"))
    assert not any(note.kind == "block_distribution" for note in program.notes)
