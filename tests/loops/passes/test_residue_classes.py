# ruff: noqa: F821 - kernels, whose words are no names here
"""Sums under tests for multiples run over the multiples, where that is the same."""

import numpy as np
import pytest

from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.pipeline import schedule

RANDOM = np.random.default_rng(5)
X, MASK = RANDOM.integers(-4, 5, 6).astype(np.float32), RANDOM.integers(-1, 2, 11).astype(np.float32)


def under_a_mask(x, m):
    y = output_tensor(m.shape, x.dtype)
    for i in range(m.shape[0]):
        total = 0.0
        for p in range(5):
            if (i - p) % 2 == 0 and m[i] > 0 and 0 <= (i - p) // 2 < x.shape[0]:
                total += x[(i - p) // 2]
        y[i] = total
    return y


def read_again(x, m):
    y = output_tensor((m.shape[0] + 1,), x.dtype)
    total = 0.0
    for i in range(m.shape[0]):
        total = 0.0
        for p in range(5):
            if (i - p) % 2 == 0 and 0 <= (i - p) // 2 < x.shape[0]:
                total += x[(i - p) // 2]
        y[i] = total
    y[m.shape[0]] = total
    return y


def of_itself(x, m):
    y = output_tensor(m.shape, x.dtype)
    for i in range(m.shape[0]):
        total = 1.0
        for p in range(5):
            if (i - p) % 2 == 0 and 0 <= (i - p) // 2 < x.shape[0]:
                total += x[(i - p) // 2] * total
        y[i] = total
    return y


@pytest.mark.parametrize(
    ("function", "changes"), [(under_a_mask, True), (read_again, False), (of_itself, False)]
)
def test_the_meaning_stays(function, changes):
    kernel, notes = parse(function, [("float32", 1), ("float32", 1)], {}), {}

    def watch(one, program, seconds):
        notes[one.name] = program.kernel.body

    scheduled = schedule(kernel, watch=watch)
    assert (notes["if_conversion"] != notes["residue_classes"]) == changes
    expected = interpret(kernel, [X, MASK], {})
    for reference, result in zip(expected, interpret(scheduled.kernel, [X, MASK], {}), strict=True):
        np.testing.assert_array_equal(result, reference)


def test_narrow_sums_stay_in_their_scalar():
    kernel, bodies = parse(under_a_mask, [("float16", 1), ("float16", 1)], {}), []
    schedule(kernel, watch=lambda one, program, seconds: bodies.append(program.kernel.body))
    assert bodies[5] == bodies[4]
