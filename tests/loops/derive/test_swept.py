# ruff: noqa: F821 - kernels, whose words are no names here
"""A degree stands for the elements that a loop or a condition reaches, and for no others."""

import math

import numpy as np
import pytest

from derive_samples import differences
from polyop import Custom
from polyop.call.explain import explain
from polyop.core.dtypes import dtype
from polyop.core.spec import Spec


def peeled(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        t = x[i, 0]
        for j in range(1, x.shape[1]):
            t = max(t, x[i, j])
        y[i, 0] = exp(x[i, 0] - t)
        s = y[i, 0]
        for j in range(1, x.shape[1]):
            y[i, j] = exp(x[i, j] - t)
            s += y[i, j]
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] / s
    return y


def flat(x):
    y = output_tensor((x.shape[0] * x.shape[1],), x.dtype)
    for i in range(x.shape[0]):
        t = x[i, 0]
        for j in range(1, x.shape[1]):
            t = max(t, x[i, j])
        s = 0.0
        for j in range(x.shape[1]):
            y[i * x.shape[1] + j] = exp(x[i, j] - t)
            s += y[i * x.shape[1] + j]
        for j in range(x.shape[1]):
            y[i * x.shape[1] + j] = y[i * x.shape[1] + j] / s
    return y


def masked(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        t = -math.inf
        for j in range(x.shape[1]):
            if j <= i:
                t = max(t, x[i, j])
        s = 0.0
        for j in range(x.shape[1]):
            if j <= i:
                y[i, j] = exp(x[i, j] - t)
                s += y[i, j]
        for j in range(x.shape[1]):
            if j <= i:
                y[i, j] = y[i, j] / s
    return y


def triangle(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        t = -math.inf
        for j in range(i + 1):
            t = max(t, x[i, j])
        s = 0.0
        for j in range(i + 1):
            y[i, j] = exp(x[i, j] - t)
            s += y[i, j]
        for j in range(i + 1):
            y[i, j] = y[i, j] / s
    return y


def at_most_once(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        t = x[i, 0]
        for j in range(x.shape[1]):
            t = max(t, x[i, j])
        s = 0.0
        for j in range(x.shape[1]):
            s += exp(x[i, j] - t)
        for _ in range(min(max(x.shape[1] - 4, 0), 1)):
            s = s * exp(t)
        y[i] = s
    return y


def narrower_mask(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        t = x[i, 0]
        for j in range(x.shape[1]):
            t = max(t, x[i, j])
        s = 0.0
        for j in range(x.shape[1]):
            if j <= i:
                y[i, j] = exp(x[i, j] - t)
                s += y[i, j]
        for j in range(x.shape[1]):
            if j < i:
                y[i, j] = y[i, j] / s
    return y


def mask_of_a_temporary(x):
    y = output_tensor(x.shape, x.dtype)
    m = allocate((x.shape[1],), x.dtype)
    for i in range(x.shape[0]):
        t = x[i, 0]
        for j in range(x.shape[1]):
            t = max(t, x[i, j])
            m[j] = x[i, j]
        s = 0.0
        for j in range(x.shape[1]):
            if m[j] > 0.0:
                y[i, j] = exp(x[i, j] - t)
                s += exp(x[i, j] - t)
            m[j] = -m[j]
        for j in range(x.shape[1]):
            if m[j] > 0.0:
                y[i, j] = y[i, j] / s
    return y


def doubled_output(x):
    y = output_tensor(x.shape, x.dtype)
    t = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        t[i] = x[i, 0]
        for j in range(x.shape[1]):
            t[i] = max(t[i], x[i, j])
        s = 0.0
        for j in range(x.shape[1]):
            s += exp(x[i, j] - t[i])
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - t[i]) / s
        u = t[i]
        t[i] = u * u
    return y, t


def copied_to_an_output(x):
    y = output_tensor(x.shape, x.dtype)
    m = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        t = x[i, 0]
        for j in range(x.shape[1]):
            t = max(t, x[i, j])
        s = 0.0
        for j in range(x.shape[1]):
            s += exp(x[i, j] - t)
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - t) / s
        m[i] = t
    return y, m


def first_column(x):
    y = output_tensor(x.shape, x.dtype)
    e = allocate(x.shape, x.dtype)
    t = x[0, 0]
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            t = max(t, x[i, j])
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            e[i, j] = exp(x[i, j] - t)
            s += e[i, j]
    for i in range(x.shape[0]):
        e[i, 0] = e[i, 0] / s
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = e[i, j]
    return y


def row_sums_of_others(x):
    y = output_tensor(x.shape, x.dtype)
    s = allocate((2,), x.dtype)
    for i in range(x.shape[0]):
        t = x[i, 0]
        for j in range(x.shape[1]):
            t = max(t, x[i, j])
        s[i % 2] = 0.0
        for j in range(x.shape[1]):
            s[i % 2] += exp(x[i, j] - t)
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - t) / (s[0] + s[1])
    return y


FREE = (peeled, flat, masked, triangle)
BOUND = (at_most_once, narrower_mask, mask_of_a_temporary, doubled_output, copied_to_an_output, first_column)
BOUND += (row_sums_of_others,)


@pytest.mark.slow(3)
@pytest.mark.parametrize("function", [*FREE, *BOUND])
def test_gradients(function):
    x = np.random.default_rng(1).normal(size=(3, 4))
    differences.check_elements(differences.Derived(function, [x]), [x], rough=1e-5)


@pytest.mark.parametrize("function", FREE)
def test_it_gets_no_gradient(function):
    assert "no output depends on t: it gets no gradient" in explained(function)


@pytest.mark.parametrize("function", BOUND)
def test_all_others_get_a_gradient(function):
    assert "no output depends on" not in explained(function)


def explained(function):
    return explain(Custom(function, func_type="hybrid"), (Spec((3, 4), dtype("float64")),))
