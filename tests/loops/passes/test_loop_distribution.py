# ruff: noqa: F821 - kernels, whose words are no names here
"""Contractions that get loops of their own, and those that may not."""

import functools

import ml_dtypes
import numpy as np
import pytest

from polyop.core.errors import KernelError
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.verify import violations
from polyop.loops.pipeline import schedule
from polyop.loops.targets import isa


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


def later_row(q, k):
    """What row i adds up row i + 1 has changed in the author's order, not before."""
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    p = output_tensor((q.shape[0] + 1, k.shape[0]), q.dtype)
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            p[i, j] = q[i, 0] + j
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, d] += p[i + 1, j] * k[j, d]
    return y, p


def earlier_row(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    p = output_tensor((q.shape[0] + 1, k.shape[0]), q.dtype)
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            p[i + 1, j] = q[i, 0] + j
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, d] += p[i, j] * k[j, d]
    return y, p


def fed_back(q, k):
    """The next row starts from what this row's sum gave."""
    y = output_tensor((q.shape[0] + 1, k.shape[1]), q.dtype)
    p = output_tensor((q.shape[0], k.shape[0]), q.dtype)
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            p[i, j] = y[i, 0] + q[i, 0] - j
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i + 1, d] += p[i, j] * k[j, d]
    return y, p


def scalar_between(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    for i in range(q.shape[0]):
        m = 0.0
        for j in range(k.shape[0]):
            m = max(m, k[j, 0] * q[i, 0])
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, d] += (q[i, j] - m) * k[j, d]
    return y


def scalar_bound(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    z = output_tensor((q.shape[0],), q.dtype)
    for i in range(q.shape[0]):
        n = i % 2 + 1
        z[i] = n
        for j in range(min(n, k.shape[0])):
            for d in range(k.shape[1]):
                y[i, d] += q[i, j] * k[j, d]
    return y, z


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


def conditional(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    p = output_tensor((q.shape[0], k.shape[0]), q.dtype)
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            if q[i, j] > 0:
                p[i, j] = q[i, j]
            else:
                p[i, j] = -1
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


def hinted(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    p = output_tensor((q.shape[0], k.shape[0]), q.dtype)
    for i in serial(q.shape[0]):
        for j in range(k.shape[0]):
            p[i, j] = q[i, 0] + j
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, d] += p[i, j] * k[j, d]
    return y, p


def hinted_parallel(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    p = output_tensor((q.shape[0], k.shape[0]), q.dtype)
    for i in parallel(q.shape[0]):
        for j in range(k.shape[0]):
            p[i, j] = q[i, 0] + j
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, d] += p[i, j] * k[j, d]
    return y, p


def hinted_inside(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    p = output_tensor((q.shape[0], k.shape[0]), q.dtype)
    for i in range(q.shape[0]):
        for j in serial(k.shape[0]):
            p[i, j] = q[i, 0] + j
        for j in range(k.shape[0]):
            for d in vectorize(k.shape[1]):
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


def names(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    p = output_tensor((q.shape[0], k.shape[0]), q.dtype)
    i_0 = 3
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            p[i, j] = q[i, 0] + j + i_0
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, d] += p[i, j] * k[j, d]
    return y, p


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
    """A row that all iterations share, and each changes."""
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    h = output_tensor((k.shape[0],), q.dtype)
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            h[j] = q[i, j] - h[j]
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, d] += h[j] * k[j, d]
    return y, h


def picked(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    p = output_tensor((q.shape[0], k.shape[0]), q.dtype)
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            p[(i * i) % q.shape[0], j] = q[i, 0] + j
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, d] += p[i, j] * k[j, d]
    return y, p


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
    """The number of iterations is what the row before it gave."""
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    n = output_tensor((q.shape[0],), "int32")
    for i in range(q.shape[0]):
        n[i] = min(i, k.shape[0])
        for j in range(n[i]):
            for d in range(k.shape[1]):
                y[i, d] += q[i, j] * k[j, d]
        n[i] = 0
    return y, n


APART = (whole, three, triangle, own_scalar, conditional, hinted_inside, itself, names, batches, in_place)
APART += (two_at_once, earlier_row)
TOGETHER = (attention, fed_back, scalar_between, scalar_bound, under_if, if_around, hinted, hinted_parallel)
TOGETHER += (both_written, state, picked, in_place_later, loops_of_a_row, later_row, operands, short)
ALL = (*APART, *TOGETHER)
MORE = (whole, three, in_place, two_at_once, short)
CASES = [*((f, "float64") for f in ALL), *((f, d) for f in MORE for d in ("float16", "bfloat16", "int32"))]
SIZES = ((0, 3, 4), (4, 0, 3), (3, 4, 0), (1, 1, 1), (5, 3, 4), (9, 17, 20), (2, 33, 7), (40, 24, 70))


@functools.cache
def typed(function, dtype="float64"):
    return parse(function, [(dtype, 2), (dtype, 2)], {})


@pytest.fixture(scope="module")
def compiled(batch):
    """Return a function that gives a kernel as an operator; all are compiled once, for threads at any size."""
    path = batch.build(batch.text([typed(*c) for c in CASES], isa.available()[0]), "-DPOLYOP_GRAIN=1")

    @functools.cache
    def of(function, dtype):
        tensors = [(dtype, ["n", "c"], ""), (dtype, ["m", "d"], "")]
        return batch.bound(function, tensors, {}, path, CASES.index((function, dtype)))

    return of


def arrays(n, m, d, dtype):
    """Return numbers so small that every order of additions gives the same, in half types as well."""
    random = np.random.default_rng([n, m, d])
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    return [random.integers(-1, 2, (n, max(m, d))).astype(kind), random.integers(-1, 2, (m, d)).astype(kind)]


@pytest.mark.parametrize(("function", "dtype"), CASES)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_results_are_the_authors(function, dtype, size, compiled, batch):
    given = arrays(*size, dtype)
    try:
        expected = interpret(typed(function, dtype), [a.copy() for a in given], {})
    except IndexError:
        expected = None  # there is no such column
    for threads in (1, 3):
        with batch.threads(threads):
            call = compiled(function, dtype)
            if expected is None:
                with pytest.raises(KernelError):
                    call(*(a.copy() for a in given))
                continue
            found = call(*(a.copy() for a in given))
            for one, other in zip(expected, found, strict=True):
                np.testing.assert_allclose(np.float64(other), np.float64(one), rtol=1e-12)


@pytest.mark.parametrize("function", ALL)
def test_what_is_done(function):
    made = schedule(typed(function))
    assert violations(made.kernel) == []
    apart = any(note.kind == "loop_distribution" for note in made.notes)
    assert apart == (function in APART)
