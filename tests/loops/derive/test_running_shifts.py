# ruff: noqa: F821 - kernels, whose words are no names here
"""Running maxima that no output depends on, as those of an online softmax, get no gradient; all others do."""

import math
import re

import numpy as np
import pytest

from derive_samples import differences
from loop_samples.running_maxima import prefixes, rescaled_one_step_late
from polyop import Custom
from polyop.call.explain import explain
from polyop.core.dtypes import dtype
from polyop.core.spec import Spec

SPEC = Spec((3, 4), dtype("float64"))


def online(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        t = x[i, 0]
        s = 0.0
        for j in range(x.shape[1]):
            before = t
            t = max(t, x[i, j])
            s = s * exp(before - t) + exp(x[i, j] - t)
        y[i] = t + log(s)
    return y


def attention(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        top = -math.inf
        s = 0.0
        for j in range(x.shape[0]):
            score = 0.0
            for k in range(x.shape[1]):
                score += x[i, k] * x[j, k]
            new = max(top, score)
            s = s * exp(top - new) + exp(score - new)
            for k in range(x.shape[1]):
                y[i, k] = y[i, k] * exp(top - new) + exp(score - new) * x[j, k]
            top = new
        for k in range(x.shape[1]):
            y[i, k] = y[i, k] / s
    return y


def causal(x):
    y = output_tensor((x.shape[1],), x.dtype)
    for i in range(x.shape[1]):
        top = -math.inf
        s = 0.0
        for j in range(x.shape[1]):
            if j <= i:
                new = max(top, x[0, j])
                s = s * exp(top - new) + exp(x[0, j] - new)
                top = new
        y[i] = log(s) + top
    return y


def two_in_turn(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        a = x[i, 0]
        b = x[i, 0]
        s = 0.0
        r = 0.0
        for j in range(x.shape[1]):
            a_before = a
            a = max(a, x[i, j])
            s = s * exp(a_before - a) + exp(x[i, j] - a)
            b_before = b
            b = min(b, x[i, j])
            r = r * exp(b - b_before) + exp(b - x[i, j])
        y[i] = (a + log(s)) * (log(r) - b)
    return y


def one_sum_not_rescaled(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        top = -math.inf
        s = 0.0
        for j in range(x.shape[1]):
            new = max(top, x[i, j])
            s = s * exp(top - new) + exp(x[i, j] - new)
            for k in range(x.shape[1]):
                y[i, k] = y[i, k] + exp(x[i, j] - new) * x[i, k]
            top = new
        for k in range(x.shape[1]):
            y[i, k] = y[i, k] / s
    return y


def some_elements_not_rescaled(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        top = -math.inf
        s = 0.0
        for j in range(x.shape[1]):
            new = max(top, x[i, j])
            s = s * exp(top - new) + exp(x[i, j] - new)
            for k in range(1, x.shape[1]):
                y[i, k] = y[i, k] * exp(top - new)
            for k in range(x.shape[1]):
                y[i, k] = y[i, k] + exp(x[i, j] - new) * x[i, k]
            top = new
        for k in range(x.shape[1]):
            y[i, k] = y[i, k] / s
    return y


def divided_by_the_last_sum(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        t = -math.inf
        s = 0.0
        for j in range(x.shape[1]):
            before = t
            t = max(t, x[i, j])
            s = s * exp(before - t) + exp(x[i, j] - t)
            y[i, j] = exp(x[i, j] - t)
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] / s
    return y


def rescaled_under_a_condition(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        t = x[i, 0]
        s = 0.0
        for j in range(x.shape[1]):
            before = t
            t = max(t, x[i, j])
            if j % 2 == 0:
                s = s * exp(before - t)
            s += exp(x[i, j] - t)
        y[i] = t + log(s)
    return y


def over_rows(x):
    y = output_tensor((x.shape[0],), x.dtype)
    t = x[0, 0]
    before = x[0, 0]
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            before = t
            t = max(t, x[i, j])
            y[i] = y[i] * exp(before - t) + exp(x[i, j] - t)
    return y


def read_before_the_loop(x):
    y = output_tensor((x.shape[0], 2), x.dtype)
    for i in range(x.shape[0]):
        t = x[i, 0]
        y[i, 1] = t * t
        s = 0.0
        for j in range(x.shape[1]):
            before = t
            t = max(t, x[i, j])
            s = s * exp(before - t) + exp(x[i, j] - t)
        y[i, 0] = t + log(s)
    return y


def set_after_the_loop(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        t = x[i, 0]
        s = 0.0
        for j in range(x.shape[1]):
            before = t
            t = max(t, x[i, j])
            s = s * exp(before - t) + exp(x[i, j] - t)
        y[i] = t + log(s)
        t = x[i, 1] * x[i, 2]
        y[i] = y[i] + t
    return y


def copied_from_a_product(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        first = x[i, 0] * x[i, 1]
        t = first
        s = 0.0
        for j in range(x.shape[1]):
            before = t
            t = max(t, x[i, j])
            s = s * exp(before - t) + exp(x[i, j] - t)
        y[i] = t + log(s) + first
    return y


def sum_of_the_iteration_before(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        top = -math.inf
        s = 0.0
        d = 0.0
        for j in range(x.shape[1]):
            new = max(top, x[i, j])
            d = s
            s = s * exp(top - new) + exp(x[i, j] - new)
            top = new
        y[i] = d / s
    return y


def row_of_the_iteration_before(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        top = -math.inf
        s = 0.0
        r = 0.0
        for j in range(x.shape[1]):
            for k in range(x.shape[1]):
                y[i, k] = r * x[i, k]
            new = max(top, x[i, j])
            s = s * exp(top - new) + exp(x[i, j] - new)
            r = exp(x[i, j] - new)
            top = new
        for k in range(x.shape[1]):
            y[i, k] = y[i, k] / s
    return y


def sums_of_rows_together(x):
    y = output_tensor((x.shape[0],), x.dtype)
    p = allocate((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        top = -math.inf
        s = 0.0
        for j in range(x.shape[1]):
            new = max(top, x[i, j])
            s = s * exp(top - new) + exp(x[i, j] - new)
            top = new
        p[i] = s
    s = 0.0
    for i in range(x.shape[0]):
        s += p[i]
    for i in range(x.shape[0]):
        y[i] = p[i] / s
    return y


def maximum_under_a_condition(x):
    y = output_tensor((x.shape[1],), x.dtype)
    t = x[0, 0]
    for j in range(x.shape[1]):
        if j % 2 == 0:
            t = max(t, x[0, j])
        u = t
        y[j] = exp(x[0, j] - u)
    s = 0.0
    for j in range(x.shape[1]):
        s += y[j]
    for j in range(x.shape[1]):
        y[j] = y[j] / s
    return y


def delayed_many_times(x):
    y = output_tensor((x.shape[1],), x.dtype)
    t = x[0, 0]
    a = 0.0
    b = 0.0
    c = 0.0
    d = 0.0
    e = 0.0
    for j in range(x.shape[1]):
        before = t
        t = max(t, x[0, j])
        y[j] = a
        a = b
        b = c
        c = d
        d = e
        e = exp(x[0, j] - t) + exp(x[0, j] - before)
    return y


def rescaled_in_part(x):
    y = output_tensor(x.shape, x.dtype)
    m = 1
    for i in range(x.shape[0]):
        top = -math.inf
        s = 0.0
        for j in range(x.shape[1]):
            new = max(top, x[i, j])
            s = s * exp(top - new) + exp(x[i, j] - new)
            m = 1
            for k in range(min(m, x.shape[1])):
                y[i, k] = y[i, k] * exp(top - new)
            m = 9
            for k in range(min(m, x.shape[1])):
                y[i, k] = y[i, k] + exp(x[i, j] - new) * x[i, k]
            top = new
        for k in range(min(m, x.shape[1])):
            y[i, k] = y[i, k] / s
    return y


FREE = {causal: ("new", "top"), prefixes: ("before", "t"), two_in_turn: ("a", "a_before", "b", "b_before")}
FREE |= {
    online: ("t",),
    attention: ("top",),
    copied_from_a_product: ("t",),
}  # rescaled_sums has made plain sums
BOUND = (one_sum_not_rescaled, some_elements_not_rescaled, rescaled_one_step_late, divided_by_the_last_sum)
BOUND += (
    rescaled_under_a_condition,
    over_rows,
    read_before_the_loop,
    set_after_the_loop,
)
BOUND += (sum_of_the_iteration_before, row_of_the_iteration_before, sums_of_rows_together)
BOUND += (maximum_under_a_condition, delayed_many_times, rescaled_in_part)


def explained(function):
    return explain(Custom(function, func_type="hybrid"), (SPEC,))


@pytest.mark.slow(2)
@pytest.mark.parametrize("function", [*FREE, *BOUND])
def test_gradients(function):
    for seed in range(3):
        x = np.random.default_rng(seed).normal(size=(3, 4))
        differences.check_elements(differences.Derived(function, [x]), [x], rough=1e-5)


@pytest.mark.slow(1)
@pytest.mark.parametrize("function", FREE)
def test_it_gets_no_gradient(function):
    text = explained(function)
    loops = Custom(function, func_type="hybrid").operator.gradient.loops(SPEC)
    for name in FREE[function]:
        assert f"no output depends on {name}: it gets no gradient" in text
        assert not re.search(rf"\bd_{name}\b", loops)


@pytest.mark.slow
@pytest.mark.parametrize("function", BOUND)
def test_all_others_get_a_gradient(function):
    assert "no output depends on" not in explained(function)
