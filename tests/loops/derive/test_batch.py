# ruff: noqa: F821 - programs in the language, whose words are no names here
"""Kernels over samples, against one run for each sample: all programs of the table, then edges."""

import numpy as np
import pytest

from polyop.loops.derive.forms import adjoint, batched
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.grammar import For
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.verify import violations

SAMPLES = 3


def _checked(kernel, samples, dims, attributes):
    """Compare one run over the samples with a run for each."""
    kernel_of_batch = batched(kernel, dims)
    assert violations(kernel_of_batch) == []
    stacked = [
        rows[0] if d is None else np.stack(rows, d)
        for rows, d in zip(zip(*samples, strict=True), dims, strict=True)
    ]
    got = interpret(kernel_of_batch, stacked, attributes)
    ones = [
        interpret(kernel, [rows[0] if d is None else rows[k] for rows, d in columns], attributes)
        for k in range(len(samples))
        for columns in [list(zip(zip(*samples, strict=True), dims, strict=True))]
    ]
    for output, rows in zip(got, zip(*ones, strict=True), strict=True):
        np.testing.assert_array_equal(output, np.stack(rows))


@pytest.mark.slow(24)
@pytest.mark.parametrize("where", ["first", "last", "one", "others"])
def test_samples_are_independent(helpers, program, where):
    """Samples along the first axis, the last one, of one tensor alone, of all but that."""
    sizes = helpers.sizes(program)
    samples = [helpers.arrays(program, sizes, seed) for seed in range(SAMPLES)]
    kernel = helpers.typed(program, samples[0])
    ranks = [a.ndim for a in samples[0]]
    dims = {
        "first": [0] * len(ranks),
        "last": list(ranks),
        "one": [ranks[0], *[None] * (len(ranks) - 1)],
        "others": [None, *[0] * (len(ranks) - 1)],
    }[where]
    if any(d is not None for d in dims):
        _checked(kernel, samples, dims, program.attributes)


def ends(x):
    y = output_tensor((x.shape[1],), x.dtype)
    for j in range(x.shape[-1]):
        y[j] = x[-1, j] + x[0, -1] * x.shape[0]
    return y


def total(x):
    y = output_tensor((), x.dtype)
    for i in range(x.shape[0]):
        y[()] += x[i]
    return y


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_places_from_the_end_and_sizes_are_those_of_a_sample(dim):
    random = np.random.default_rng(0)
    samples = [[random.normal(size=(2, 4))] for _ in range(SAMPLES)]
    _checked(parse(ends, [("float64", 2)], {}), samples, [dim], {})


@pytest.mark.parametrize("count", [0, 1])
def test_no_sample_and_one(count):
    kernel = batched(parse(ends, [("float64", 2)], {}), [1])
    (found,) = interpret(kernel, [np.ones((2, count, 4))])
    assert found.tolist() == [[3.0] * 4] * count


def test_the_loop_over_samples_is_around_all_others():
    kernel = parse(ends, [("float32", 2)], {})
    kernel_of_batch = batched(kernel, [2])
    (loop,) = kernel_of_batch.body
    assert isinstance(loop, For)
    assert (loop.var, loop.hi.buffer, loop.hi.axis, len(loop.body)) == ("sample", "x", 2, len(kernel.body))
    twice = batched(kernel_of_batch, [0])
    assert (twice.body[0].var, twice.body[0].body[0].var) == ("sample_2", "sample")
    assert len(twice.buffers["y"].shape) == 3


def test_the_gradient_of_a_batch_is_the_batch_of_the_gradient(helpers):
    random = np.random.default_rng(1)
    x, g = random.normal(size=(SAMPLES, 2, 4)), random.normal(size=(SAMPLES, 4))
    kernel = parse(ends, [("float64", 2)], {})
    one, other = (
        adjoint(batched(kernel, [0]), [True]).kernel,
        batched(adjoint(kernel, [True]).kernel, [0, None, 0]),
    )
    y = np.zeros((SAMPLES, 4))
    found = interpret(one, helpers.given(one, [x, y, g]))[0]
    absent = np.zeros((), bool)
    again = interpret(other, [x, absent, g]) if other.buffers["x"].shape else None
    expected = np.zeros_like(x)
    expected[:, -1, :] += g
    expected[:, 0, -1] += 2 * g.sum(1)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert again is None or np.allclose(again[0], expected)
