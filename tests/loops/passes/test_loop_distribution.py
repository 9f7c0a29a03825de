# ruff: noqa: F821 - kernels, whose words are no names here
"""Loop distribution: contractions that it moves into separate loops, and those that must stay."""

import ml_dtypes
import numpy as np
import pytest

from loop_samples.rows_of_products import compiled, scalar_between, scalar_bound, typed
from loop_samples.variants import variant
from polyop.core.errors import KernelError
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.verify import violations
from polyop.loops.pipeline import schedule


def attention(q, k):
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


def whole(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    p = allocate((q.shape[0], k.shape[0]), q.dtype)
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            p[i, j] = 0
            for d in range(k.shape[1]):
                p[i, j] += q[i, d] * k[j, d]
        for j in range(k.shape[0]):
            p[i, j] = p[i, j] * 2 - 1
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, d] += p[i, j] * k[j, d]
    return y


def three(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    z = output_tensor((k.shape[0], k.shape[1]), q.dtype)
    p = output_tensor((q.shape[0], k.shape[0]), q.dtype)
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                p[i, j] += q[i, d] * k[j, d]
        for j in range(k.shape[0]):
            p[i, j] = p[i, j] - 1
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, d] += p[i, j] * k[j, d]
                z[j, d] += p[i, j] * q[i, d]
    return y, z, p


def triangle(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    p = output_tensor((q.shape[0], k.shape[0]), q.dtype)
    for i in range(q.shape[0]):
        for j in range(min(i + 1, k.shape[0])):
            p[i, j] = q[i, 0] - j
        for j in range(min(i + 1, k.shape[0])):
            for d in range(k.shape[1]):
                y[i, d] += p[i, j] * k[j, d]
        for j in range(min(i, k.shape[0])):
            p[i, j] = p[i, j] + 1
    return y, p


def own_scalar(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    p = output_tensor((q.shape[0], k.shape[0]), q.dtype)
    for i in range(q.shape[0]):
        m = 0.0
        for j in range(k.shape[0]):
            m = max(m, k[j, 0])
        for j in range(k.shape[0]):
            p[i, j] = k[j, 0] - m
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, d] += p[i, j] * k[j, d]
    return y, p


def under_if(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    p = output_tensor((q.shape[0], k.shape[0]), q.dtype)
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            p[i, j] = q[i, 0] + j
        if q[i, 0] > 0:
            for j in range(k.shape[0]):
                for d in range(k.shape[1]):
                    y[i, d] += p[i, j] * k[j, d]
    return y, p


def if_around(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    p = output_tensor((q.shape[0], k.shape[0]), q.dtype)
    if k.shape[0] > 2:
        for i in range(q.shape[0]):
            for j in range(k.shape[0]):
                p[i, j] = q[i, 0] + j
            for j in range(k.shape[0]):
                for d in range(k.shape[1]):
                    y[i, d] += p[i, j] * k[j, d]
    return y, p


def itself(q, k):
    y = output_tensor((q.shape[0], k.shape[0]), q.dtype)
    z = output_tensor((q.shape[1],), q.dtype)
    for i in range(q.shape[0]):
        for j in range(min(q.shape[0], k.shape[0])):
            for d in range(q.shape[1]):
                y[i, j] += q[i, d] * q[j, d]
        for d in range(q.shape[1]):
            z[d] = z[d] * 2 + y[i, 0]
    return y, z


def operands(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    z = output_tensor((q.shape[0],), q.dtype)
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, d] += q[i, j] * k[j, d] * q[0, j] - k[0, d]
        z[i] = y[i, 0] + q[i, 0]
    return y, z


def both_written(q, k):
    """The two sums of one iteration feed each other."""
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    z = output_tensor((k.shape[0], k.shape[1]), q.dtype)
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, d] += q[i, j] * z[j, d] + 1
                z[j, d] += q[i, j] * k[j, d]
    return y, z


def batches(q, k):
    y = output_tensor((2, q.shape[0], k.shape[1]), q.dtype)
    p = output_tensor((2, q.shape[0], k.shape[0]), q.dtype)
    for b in range(2):
        for i in range(q.shape[0]):
            for j in range(k.shape[0]):
                p[b, i, j] = q[i, j] - b
            for j in range(k.shape[0]):
                for d in range(k.shape[1]):
                    y[b, i, d] += p[b, i, j] * k[j, d]
            for d in range(k.shape[1]):
                y[b, i, d] = y[b, i, d] * 2
    return y, p


def state(q, k):
    """All iterations share the row h, and each changes it."""
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    h = output_tensor((k.shape[0],), q.dtype)
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            h[j] = q[i, j] - h[j]
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, d] += h[j] * k[j, d]
    return y, h


def in_place(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, d] += q[i, j] * k[j, d]
        for j in range(k.shape[0]):
            q[i, j] = q[i, j] * 2
    return y, q


def in_place_later(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, d] += q[i, j] * k[j, d]
        for j in range(k.shape[0]):
            q[q.shape[0] - 1 - i, j] = q[i, j] * 2
    return y, q


def short(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    p = output_tensor((q.shape[0], 3), q.dtype)
    for i in range(q.shape[0]):
        for j in range(3):
            p[i, j] = q[i, 0] + j
        for j in range(3):
            for d in range(k.shape[1]):
                y[i, d] += p[i, j] * k[min(j, k.shape[0] - 1), d]
    return y, p


def two_at_once(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    z = output_tensor((q.shape[0], k.shape[0]), q.dtype)
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, d] += q[i, j] * k[j, d]
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                z[i, j] += y[i, d] * k[j, d]
    return y, z


def loops_of_a_row(q, k):
    """The number of iterations is read from a tensor that the loop writes."""
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    n = output_tensor((q.shape[0],), "int32")
    for i in range(q.shape[0]):
        n[i] = min(i, k.shape[0])
        for j in range(n[i]):
            for d in range(k.shape[1]):
                y[i, d] += q[i, j] * k[j, d]
        n[i] = 0
    return y, n


# a row of p, then a product that reads it; the kernels below change a line or two
ROW_AND_PRODUCT = """
def f(q, k):
    y = output_tensor((q.shape[0] + 1, k.shape[1]), q.dtype)
    p = output_tensor((q.shape[0] + 1, k.shape[0]), q.dtype)
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            p[i, j] = q[i, 0] + j
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, d] += p[i, j] * k[j, d]
    return y, p
"""
FILL = "p[i, j] = q[i, 0] + j"
ROWS = "for i in range("
BY_SIGN = """if q[i, j] > 0:
                p[i, j] = q[i, j]
            else:
                p[i, j] = -1"""


def row_and_product(name, *changes):
    return variant(name, ROW_AND_PRODUCT, *changes)


# row i + 1, which the product reads here, changes after it in the author's order
later_row = row_and_product("later_row", ("p[i, j] * k", "p[i + 1, j] * k"))
earlier_row = row_and_product("earlier_row", (FILL, "p[i + 1, j] = q[i, 0] + j"))
# the next row starts from what this row's product gave
fed_back = row_and_product(
    "fed_back", (FILL, "p[i, j] = y[i, 0] + q[i, 0] - j"), ("y[i, d] +=", "y[i + 1, d] +=")
)
conditional = row_and_product("conditional", (FILL, BY_SIGN))
hinted = row_and_product("hinted", (ROWS, "for i in serial("))
hinted_parallel = row_and_product("hinted_parallel", (ROWS, "for i in parallel("))
hinted_inside = row_and_product(
    "hinted_inside",
    (f"for j in range(k.shape[0]):\n            {FILL}", f"for j in serial(k.shape[0]):\n            {FILL}"),
    ("for d in range(", "for d in vectorize("),
)
names = row_and_product("names", (f"    {ROWS}", f"    i_0 = 3\n    {ROWS}"), (FILL, f"{FILL} + i_0"))
picked = row_and_product("picked", (FILL, "p[(i * i) % q.shape[0], j] = q[i, 0] + j"))


APART = (whole, three, triangle, own_scalar, conditional, hinted_inside, itself, names, batches, in_place)
APART += (two_at_once, earlier_row)
TOGETHER = (attention, fed_back, scalar_between, scalar_bound, under_if, if_around, hinted, hinted_parallel)
TOGETHER += (both_written, state, picked, in_place_later, loops_of_a_row, later_row, operands, short)
ALL = (*APART, *TOGETHER)
OTHER_DTYPES = (whole, three, in_place, two_at_once, short)
CASES = [
    *((f, "float64") for f in ALL),
    *((f, d) for f in OTHER_DTYPES for d in ("float16", "bfloat16", "int32")),
]
SIZES = ((0, 3, 4), (4, 0, 3), (3, 4, 0), (1, 1, 1), (5, 3, 4), (9, 17, 20), (2, 33, 7), (40, 24, 70))


@pytest.fixture(scope="session")
def operators(batch):
    return compiled(batch, CASES)


def arrays(n, m, d, dtype):
    """Return inputs of -1, 0 and 1: sums are exact in any order, also in half types."""
    random = np.random.default_rng([n, m, d])
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    return [random.integers(-1, 2, (n, max(m, d))).astype(kind), random.integers(-1, 2, (m, d)).astype(kind)]


@pytest.mark.slow
@pytest.mark.parametrize(("function", "dtype"), CASES)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_results_are_the_authors(function, dtype, size, operators, batch):
    inputs = arrays(*size, dtype)
    try:
        expected = interpret(typed(function, dtype), [a.copy() for a in inputs], {})
    except IndexError:
        expected = None  # an index is out of range for these sizes
    for threads in (1, 3):
        with batch.threads(threads):
            call = operators(function, dtype)
            if expected is None:
                with pytest.raises(KernelError):
                    call(*(a.copy() for a in inputs))
                continue
            results = call(*(a.copy() for a in inputs))
            for one, other in zip(expected, results, strict=True):
                np.testing.assert_allclose(np.float64(other), np.float64(one), rtol=1e-12)


@pytest.mark.slow(6)
@pytest.mark.parametrize("function", ALL)
def test_which_contractions_are_separated(function):
    program = schedule(typed(function))
    assert violations(program.kernel) == []
    separated = any(note.kind == "loop_distribution" for note in program.notes)
    assert separated == (function in APART)
