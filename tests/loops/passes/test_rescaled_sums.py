# ruff: noqa: F821 - kernels, whose words are no names here
"""Rescaled sums: the loops that become a maximum and plain sums, and those that must stay."""

import math

import numpy as np
import pytest

from loop_samples.running_maxima import prefixes, rescaled_one_step_late
from polyop import Custom
from polyop.loops.derive.forms import derive
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.verify import violations
from polyop.loops.passes.rescaled_sums import rescaled_sums, rescaled_sums_of_derivations
from polyop.loops.pipeline import schedule
from polyop.loops.program import Program


def log_sum(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        top = -math.inf
        total = 0.0
        for j in range(x.shape[1]):
            new = max(top, x[i, j])
            total = total * exp(top - new) + exp(x[i, j] - new)
            top = new
        y[i] = top + log(total)
    return y


def before_is_kept(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        t = x[i, 0]
        s = 0.0
        for j in range(x.shape[1]):
            before = t
            t = max(x[i, j], t)
            s = exp(x[i, j] - t) + exp(before - t) * s
        y[i] = t + log(s)
    return y


def starts_with_a_number(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        t = x[i, 0] * 2
        s = 1.0
        for j in range(1, x.shape[1]):
            new = max(t, x[i, j] * 2)
            s *= exp(t - new)
            s += exp(x[i, j] * 2 - new)
            t = new
        y[i] = t + log(s)
    return y


def attention(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        top = -math.inf
        total = 0.0
        for j in range(x.shape[0]):
            score = dot(x[i], x[j]) / sqrt(x.shape[1])
            new = max(top, score)
            weight = exp(score - new)
            shrink = exp(top - new)
            total = total * shrink + weight
            y[i] = y[i] * shrink + weight * x[j]
            top = new
        y[i] = y[i] / total
    return y


def triangle(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        top = -math.inf
        total = 0.0
        for j in range(i + 1):
            bias = -1.0 if j % 2 == 0 else 0.5
            score = bias
            for k in range(x.shape[1]):
                score += x[i, k] * x[j, k]
            new = max(top, score)
            total = total * exp(top - new) + exp(score - new)
            for k in range(x.shape[1]):
                y[i, k] = y[i, k] * exp(top - new) + bias * exp(score - new) * x[j, k] / 2
            top = new
        for k in range(x.shape[1]):
            y[i, k] = y[i, k] / total
    return y


def whole_tensor(x):
    y = output_tensor((x.shape[1],), x.dtype)
    top = -math.inf
    total = 0.0
    for i in range(x.shape[0]):
        score = x[i, 0]
        new = max(top, score)
        total = total * exp(top - new) + exp(score - new)
        for k in range(x.shape[1]):
            y[k] = y[k] * exp(top - new) + exp(score - new) * x[i, k]
        top = new
    for k in range(x.shape[1]):
        y[k] = y[k] / total
    return y


PLAIN = (log_sum, before_is_kept, starts_with_a_number, attention, triangle, whole_tensor)


def one_sum_not_rescaled(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        top = -math.inf
        s = 0.0
        r = 0.0
        for j in range(x.shape[1]):
            new = max(top, x[i, j])
            s = s * exp(top - new) + exp(x[i, j] - new)
            r = r + exp(x[i, j] - new)
            top = new
        y[i] = r / s
    return y


def another_score(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        top = -math.inf
        s = 0.0
        for j in range(x.shape[1]):
            new = max(top, x[i, j])
            s = s * exp(top - new) + exp(x[i, 0] - new)
            top = new
        y[i] = s
    return y


def reads_the_sum(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        top = -math.inf
        s = 0.0
        for j in range(x.shape[1]):
            score = x[i, j] + 0.1 * s
            new = max(top, score)
            s = s * exp(top - new) + exp(score - new)
            top = new
        y[i] = s
    return y


def reads_another_row(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        top = -math.inf
        for j in range(x.shape[1]):
            new = max(top, x[i, j])
            for k in range(1, x.shape[1]):
                y[i, k] = y[i, k] * exp(top - new) + exp(x[i, j] - new) * y[i, k - 1]
            top = new
    return y


def score_is_changed_later(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        top = -math.inf
        s = 0.0
        for j in range(x.shape[1]):
            score = x[i, j]
            new = max(top, score)
            score = 2.0
            s = s * exp(top - new) + exp(score - new)
            top = new
        y[i] = s
    return y


def ends_early(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        top = -math.inf
        s = 0.0
        for j in range(x.shape[1]):
            if x[i, j] > 1.0:
                break
            new = max(top, x[i, j])
            s = s * exp(top - new) + exp(x[i, j] - new)
            top = new
        y[i] = s
    return y


def asks_for_order(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        top = -math.inf
        s = 0.0
        for j in serial(x.shape[1]):
            new = max(top, x[i, j])
            s = s * exp(top - new) + exp(x[i, j] - new)
            top = new
        y[i] = s
    return y


KEPT = (
    prefixes,
    one_sum_not_rescaled,
    rescaled_one_step_late,
    another_score,
    reads_the_sum,
    reads_another_row,
    score_is_changed_later,
    ends_early,
    asks_for_order,
)
pytestmark = pytest.mark.filterwarnings("ignore::polyop.UninitialisedWarning")
PASSES = (rescaled_sums, rescaled_sums_of_derivations)
SHAPES = ((0, 3), (1, 1), (3, 4), (5, 2), (67, 9), (2, 0))


def parsed(function, dtype="float64"):
    return parse(function, [(dtype, 2)], {})


def data(shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape) * 3


def is_changed(program):
    return any(note.kind == "rescaled_sums" for note in program.notes)


@pytest.mark.slow(2)
@pytest.mark.parametrize("one", PASSES)
@pytest.mark.parametrize("function", PLAIN)
def test_the_sums_are_the_same(function, one):
    kernel = parsed(function)
    program = one(Program(kernel))
    assert is_changed(program)
    assert violations(program.kernel) == []
    for shape in SHAPES:
        if 0 in shape[1:] and function not in (log_sum, attention):
            continue  # the kernel reads the first element
        with np.errstate(all="ignore"):
            expected, result = (interpret(k, [data(shape)], {})[0] for k in (kernel, program.kernel))
        np.testing.assert_allclose(result, expected, 1e-12, 1e-12)


@pytest.mark.parametrize("function", KEPT)
def test_other_loops_stay(function):
    for one in PASSES:
        assert not is_changed(one(Program(parsed(function))))


SPECIAL = [(math.inf, 1.0), (math.nan, 1.0), (1.0, math.nan), (1.0, math.inf), (1.0, -math.inf)]
SPECIAL += [(-math.inf, 1.0), (-math.inf, -math.inf), (-math.inf, math.nan)]


@pytest.mark.parametrize("values", SPECIAL, ids=str)
@pytest.mark.parametrize("function", [log_sum, before_is_kept, starts_with_a_number])
def test_what_is_no_number_stays_none(function, values):
    kernel = parsed(function)
    program = rescaled_sums(Program(kernel))
    x = np.array([[*values, 0.5], [0.5, *values], [0.1, 0.2, 0.3]])
    with np.errstate(all="ignore"):
        expected, result = (interpret(k, [x], {})[0] for k in (kernel, program.kernel))
    np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))
    np.testing.assert_allclose(result, expected, 1e-12)


@pytest.mark.parametrize("function", [log_sum, before_is_kept, starts_with_a_number])
def test_a_call_that_records_a_gradient_has_the_same_values(function):
    """The forward that saves temporaries returns the kernel's results: a masked first score is NaN there, too."""
    kernel = parsed(function)
    saved = derive(kernel, "saving") or kernel
    x = np.array([[*values, 0.5] for values in SPECIAL])
    with np.errstate(all="ignore"):
        expected, result = (interpret(k, [x], {})[0] for k in (kernel, saved))
    np.testing.assert_allclose(result, expected, 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("function", PLAIN)
def test_compiled(function):
    assert is_changed(schedule(parsed(function)))
    operator = Custom(function, func_type="hybrid")
    for dtype, rough in (("float32", 1e-4), ("float64", 1e-11)):
        for shape in ((1, 1), (7, 5), (100, 33)):
            x = data(shape).astype(dtype)
            (expected,) = interpret(parsed(function, dtype), [x], {})
            np.testing.assert_allclose(operator(x), expected, rough, rough)


@pytest.mark.parametrize("function", [log_sum, before_is_kept])
def test_compiled_what_is_no_number(function):
    operator = Custom(function, func_type="hybrid")
    x = np.array([[*values, 0.5] for values in SPECIAL], np.float32)
    with np.errstate(all="ignore"):
        (expected,) = interpret(parsed(function, "float32"), [x], {})
    np.testing.assert_allclose(operator(x), expected, 1e-5)


def test_random_attention():
    kernel = parsed(attention)
    program = rescaled_sums(Program(kernel))
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(rng.integers(1, 9), rng.integers(1, 6))) * 10.0 ** rng.integers(-2, 3)
        (expected,), (result,) = (interpret(k, [x], {}) for k in (kernel, program.kernel))
        np.testing.assert_allclose(result, expected, 1e-10, 1e-12)
