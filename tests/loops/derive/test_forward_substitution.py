# ruff: noqa: F821 - kernels, whose words are no names here
"""The adjoint of a number that is stored once is read elsewhere only while what it is made of stays."""

import numpy as np
import pytest

from derive_samples import differences

KERNELS = []


def kernel(function):
    KERNELS.append(function)
    return function


@kernel
def before_a_loop_that_rescales(x, w):
    y = output_tensor((4,), x.dtype)
    for i in range(4):
        y[i] = w[i]
    a = x[0] * w[1]
    for i in range(4):
        y[i] = y[i] * x[i]
    y[1] += a - a * 0.25
    return y


@kernel
def before_a_loop_over_pairs(x, w):
    y = output_tensor((4,), x.dtype)
    for i in range(4):
        y[i] = w[i]
    a = x[0] * w[1]
    for i in range(4):
        for j in range(4):
            y[j] += y[i] * x[j]
    y[1] += a - a * 0.25
    return y


@kernel
def between_statements(x, w):
    y = output_tensor((1,), x.dtype)
    y[0] = x[0] * w[0]
    a = x[1] * w[1]
    y[0] = y[0] * x[2]
    y[0] += a - a * w[2]
    return y


@kernel
def in_a_loop(x, w):
    y = output_tensor((4,), x.dtype)
    for i in range(1, 4):
        a = x[i] * w[i]
        y[i] = y[i - 1] * x[i]
        y[i] += a - a * w[0]
    return y


@kernel
def carried_by_a_loop(x, w):
    y = output_tensor((4,), x.dtype)
    s = x[0]
    for i in range(4):
        s = s * 0.5 + x[i] * w[i]
        y[i] = s * w[3 - i]
    s = s * s
    for i in range(4):
        y[i] = y[i] * s
        s = s + y[i] * 0.1
    return y


@pytest.mark.parametrize("function", KERNELS, ids=lambda function: function.__name__)
def test_gradient(function):
    arrays = [np.random.default_rng(seed).uniform(0.5, 1.5, 4) for seed in range(2)]
    differences.check_elements(differences.Derived(function, arrays), arrays)


def test_the_adjoint_of_a_scaled_sum_is_a_factor_in_the_loop():
    def scaled_sum(x):
        y = output_tensor((1,), x.dtype)
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i] * x[i]
        y[0] = 3.0 * s
        return y

    x = np.array([0.5, -1.0, 2.0])
    derived = differences.Derived(scaled_sum, [x])
    assert all(buffer.role != "local" for buffer in derived.backward.buffers.values())
    differences.check_elements(derived, [x])
