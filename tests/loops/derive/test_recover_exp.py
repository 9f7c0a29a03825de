# ruff: noqa: F821 - kernels, whose words are no names here
"""Exponentials that a division overwrote are recovered from the quotient, or recomputed."""

import math
import re

import numpy as np
import pytest
import torch

from derive_samples import differences
from polyop import Custom, kernel
from polyop.call.explain import explain
from polyop.core.dtypes import dtype
from polyop.core.spec import Spec


def given(x, t):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = exp(x[i])
        y[i] = y[i] / t[0]
    return y


def each_its_own(x, t):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = exp(x[i])
        y[i] = y[i] / t[i]
    return y


def of_rows(x, t):
    y = output_tensor((x.shape[0], 3), x.dtype)
    for i in range(x.shape[0]):
        for j in range(3):
            y[i, j] = exp(x[i] * (j + 1))
        for j in range(3):
            y[i, j] = y[i, j] / (t[i] * t[0])
    return y


def by_an_output(x, t):
    y = output_tensor(x.shape, x.dtype)
    z = output_tensor((1,), x.dtype)
    z[0] = t[0] * t[1]
    for i in range(x.shape[0]):
        y[i] = exp(x[i])
    for i in range(x.shape[0]):
        y[i] = y[i] / z[0]
    return y, z


RECOVERED = (given, each_its_own, of_rows, by_an_output)


def softmax(x, t):
    y = output_tensor(x.shape, x.dtype)
    s = 0.0
    for i in range(x.shape[0]):
        y[i] = exp(x[i] * t[0])
        s += y[i]
    for i in range(x.shape[0]):
        y[i] = y[i] / s
    return y


def not_the_first(x, t):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = exp(x[i])
    for i in range(1, x.shape[0]):
        y[i] = y[i] / t[0]
    return y


def the_one_before(x, t):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = exp(x[i])
    for i in range(1, x.shape[0]):
        y[i] = y[i - 1] / t[0]
    return y


def under_a_condition(x, t):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = exp(x[i])
        if x[i] > 0:
            y[i] = y[i] / t[0]
    return y


def twice(x, t):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = exp(x[i])
        y[i] = y[i] / t[0]
        y[i] = y[i] / t[1]
    return y


def many_times(x, t):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = exp(x[i])
        for k in range(t.shape[0]):
            y[i] = y[i] / t[k]
    return y


def by_itself(x, t):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = exp(x[i])
        y[i] = y[i] / (y[i] + t[0] * t[0])
    return y


def by_what_changes(x, t):
    y = output_tensor(x.shape, x.dtype)
    z = output_tensor((1,), x.dtype)
    z[0] = t[0] * t[1]
    for i in range(x.shape[0]):
        y[i] = exp(x[i])
    for i in range(x.shape[0]):
        y[i] = y[i] / z[0]
    z[0] = t[2]
    return y, z


def overwritten_after(x, t):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = exp(x[i])
        y[i] = y[i] / t[0]
    y[0] = 1.0
    return y


def overwritten_between(x, t):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = exp(x[i])
    y[0] = t[1]
    for i in range(x.shape[0]):
        y[i] = y[i] / t[0]
    return y


def added_to(x, t):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = exp(x[i])
        y[i] += x[i]
        y[i] = y[i] / t[0]
    return y


def read_too(x, t):
    y = output_tensor(x.shape, x.dtype)
    s = output_tensor((1,), x.dtype)
    s[0] = 0.0
    for i in range(x.shape[0]):
        y[i] = exp(x[i])
        s[0] += y[i]
    for i in range(x.shape[0]):
        y[i] = y[i] / t[0]
    return y, s


def root(x, t):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = sqrt(x[i] * x[i])
        y[i] = y[i] / t[0]
    return y


def flat(x, t):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = tanh(x[i])
        y[i] = y[i] / t[0]
    return y


COMPUTED = (not_the_first, the_one_before, under_a_condition, twice, many_times, by_itself, by_what_changes)
COMPUTED += (overwritten_after, overwritten_between, added_to, read_too, root, flat)
SPECS = (Spec((4,), dtype("float64")), Spec((4,), dtype("float64")))


@pytest.mark.slow(16)
@pytest.mark.parametrize("function", [*RECOVERED, softmax, *COMPUTED])
def test_gradients(function):
    for seed in range(3):
        x, t = np.random.default_rng([seed, 1]).normal(size=(2, 4))
        t += np.sign(t) * 0.5  # negative ones too
        differences.check_elements(differences.Derived(function, [x, t]), [x, t], rough=1e-5)


@pytest.mark.parametrize("function", RECOVERED)
def test_recovered(function):
    op = Custom(function, func_type="hybrid")
    assert len(quotients(op)) == 1
    assert "exp(" not in op.operator.gradient.loops(*SPECS)


@pytest.mark.slow(1)
@pytest.mark.parametrize("function", [softmax, *COMPUTED])
def test_recomputed(function):
    op = Custom(function, func_type="hybrid")
    assert quotients(op) == []
    if function not in (root, flat):
        assert "exp(" in op.operator.gradient.loops(*SPECS)


@pytest.mark.slow
@pytest.mark.parametrize(("tape", "exponentials"), [("auto", 0), ("none", 1)])
def test_by_a_saved_sum(tape, exponentials):
    op = Custom(kernel(softmax, compile_attrs={"tape": tape}), func_type="hybrid")
    x, t = torch.randn(2, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    tensors = (x.requires_grad_(), t.requires_grad_())
    assert torch.autograd.gradcheck(op, tensors)
    assert torch.autograd.gradgradcheck(op, tensors)
    part = op.operator.gradient.saving(tensors)
    assert (part is None) == (tape == "none")
    gradient = (part or op).operator.gradient
    assert ("exp(" in gradient.loops(*SPECS)) == bool(exponentials)


@pytest.mark.parametrize("divisor", [math.inf, -math.inf, 1e308, -1e200, -2.0, 1e-300])
@pytest.mark.parametrize("function", [given, read_too])
def test_divisors_at_the_ends(function, divisor):
    x, t = np.array([-600.0, 1.0, 2.0, -1.0]), np.array([divisor, 1, 1, 1])
    derived = differences.Derived(function, [x, t])
    cotangents = [np.ones_like(output) for output in derived.outputs([x, t])]
    gradient = derived.gradients([x, t], cotangents)[0]
    expected = np.exp(x) / divisor + (np.exp(x) if function is read_too else 0)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=5e-324)


@pytest.mark.slow(2)
@pytest.mark.parametrize("divisor", [math.inf, -2.0, 1e30])
def test_compiled_with_divisors_at_the_ends(divisor):
    x, t = np.linspace(-3, 3, 37), np.full(37, divisor)
    for function in (given, read_too):
        outputs, pull = Custom(function, func_type="hybrid").vjp(x, t)
        several = isinstance(outputs, tuple)
        cotangents = tuple(map(np.ones_like, outputs)) if several else np.ones_like(outputs)
        expected = np.exp(x) / divisor + (np.exp(x) if function is read_too else 0)
        np.testing.assert_allclose(pull(cotangents)[0], expected, rtol=1e-12)


@pytest.mark.parametrize("divisor", [math.inf, 1e30])
def test_roots_of_which_nothing_is_left(divisor):
    x, t = np.array([1e-3, -1e-3, 2.0, 1e10]), np.array([divisor, 1, 1, 1])
    x, t = x.astype(np.float32), t.astype(np.float32)
    derived = differences.Derived(root, [x, t], present=(True,))
    gradient = derived.gradients([x, t], [np.ones(4, np.float32)])[0]
    np.testing.assert_allclose(gradient, np.sign(x) / t[0], rtol=1e-5)


def test_an_exponential_of_which_nothing_is_left():
    x, t = np.float32([-80, -60, 0, 3]), np.float32([1e38, 1, 1, 1])
    derived = differences.Derived(given, [x, t], present=(True,))
    gradient = derived.gradients([x, t], [np.ones(4, np.float32)])[0]
    np.testing.assert_allclose(gradient, np.exp(np.float64(x)) / 1e38, rtol=1e-4, atol=2e-45)


def test_half_types_are_computed_again():
    op = Custom(given, func_type="hybrid")
    half = (Spec((4,), dtype("float16")), Spec((4,), dtype("float16")))
    assert "quotient" not in explain(op, half)
    assert "exp(" in op.operator.gradient.loops(*half)


def quotients(op):
    """Return the outputs that, by ``explain``, are recovered from a quotient."""
    return re.findall(r"(\w+) is recovered from the quotient of line \d+", explain(op, SPECS))
