# ruff: noqa: F821 - kernels, whose words are no names here
"""Maxima that no output depends on get no gradient; all others do."""

import numpy as np
import pytest
import torch

from derive_samples import differences
from polyop import Custom, kernel
from polyop.call.explain import explain
from polyop.core.dtypes import dtype
from polyop.core.spec import Spec
from polyop.loops.derive.forms import saving
from polyop.loops.ir.interpret import interpret


def softmax(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        t = x[i, 0]
        for j in range(x.shape[1]):
            t = max(t, x[i, j])
        s = 0.0
        for j in range(x.shape[1]):
            s += exp(x[i, j] - t)
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - t) / s
    return y


def log_sum(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        t = x[i, 0]
        for j in range(x.shape[1]):
            t = max(t, x[i, j])
        s = 0.0
        for j in range(x.shape[1]):
            s += exp(x[i, j] - t)
        y[i] = log(s) + t
    return y


def least(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        t = x[i, 0]
        for j in range(x.shape[1]):
            t = min(t, x[i, j])
        s = 0.0
        for j in range(x.shape[1]):
            s += exp(2.0 * (t - x[i, j]))
        y[i] = sqrt(s) * exp(-t) + 0.5 * log(s) - t
    return y


def of_all_rows(x):
    y = output_tensor(x.shape, x.dtype)
    t = x[0, 0]
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            t = max(t, x[i, j])
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            s += exp(x[i, j] - t)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - t) / s
    return y


def from_zeros(x):
    y = output_tensor(x.shape, x.dtype)
    t = allocate((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            t[i] = max(t[i], x[i, j])
        s = 0.0
        for j in range(x.shape[1]):
            s += exp(x[i, j] - t[i])
        for j in range(1, x.shape[1]):
            y[i, j] += exp(x[i, j] - t[i]) / s
    return y


def returned_too(x):
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
    return y, t


def two(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        a = x[i, 0]
        for j in range(x.shape[1]):
            a = max(a, x[i, j])
        b = x[i, 0] * x[i, 0] - a
        for j in range(x.shape[1]):
            b = max(b, x[i, j] * x[i, j] - a)
        s = 0.0
        for j in range(x.shape[1]):
            s += exp(x[i, j] * x[i, j] - a - b)
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] * x[i, j] - a - b) / s
    return y


def one_of_two(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        a = x[i, 0]
        for j in range(x.shape[1]):
            a = max(a, x[i, j])
        b = x[i, 0] * x[i, 0] - a
        for j in range(x.shape[1]):
            b = max(b, x[i, j] * x[i, j] - a)
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] * x[i, j] - a - b)
    return y


FREE = {softmax: "t", log_sum: "t", least: "t", of_all_rows: "t", from_zeros: "t", returned_too: "t"}
FREE |= {two: "ab", one_of_two: "a"}


def not_divided(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        t = x[i, 0]
        for j in range(x.shape[1]):
            t = max(t, x[i, j])
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - t)
    return y


def partly_divided(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        t = x[i, 0]
        for j in range(x.shape[1]):
            t = max(t, x[i, j])
        s = 0.0
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - t)
            s += y[i, j]
        for j in range(1, x.shape[1]):
            y[i, j] = y[i, j] / s
    return y


def sometimes_divided(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        t = x[i, 0]
        for j in range(x.shape[1]):
            t = max(t, x[i, j])
        s = 0.0
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - t)
            s += y[i, j]
        for j in range(x.shape[1]):
            if x[i, j] > 0:
                y[i, j] = y[i, j] / s
    return y


def times_top(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        t = x[i, 0]
        for j in range(x.shape[1]):
            t = max(t, x[i, j])
        s = 0.0
        for j in range(x.shape[1]):
            s += exp(x[i, j] - t)
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - t) / s * t
    return y


def log_sum_below_top(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        t = x[i, 0]
        for j in range(x.shape[1]):
            t = max(t, x[i, j])
        s = 0.0
        for j in range(x.shape[1]):
            s += exp(x[i, j] - t)
        y[i] = log(s)
    return y


def with_one_more(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        t = x[i, 0]
        for j in range(x.shape[1]):
            t = max(t, x[i, j])
        s = 1.0
        for j in range(x.shape[1]):
            s += exp(x[i, j] - t)
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - t) / s
    return y


def over_all_rows(x):
    y = output_tensor(x.shape, x.dtype)
    s = 0.0
    for i in range(x.shape[0]):
        t = x[i, 0]
        for j in range(x.shape[1]):
            t = max(t, x[i, j])
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - t)
            s += y[i, j]
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] / s
    return y


def over_the_row_before(x):
    y = output_tensor(x.shape, x.dtype)
    e = allocate(x.shape, x.dtype)
    for i in range(x.shape[0]):
        t = x[i, 0]
        for j in range(x.shape[1]):
            t = max(t, x[i, j])
        for j in range(x.shape[1]):
            e[i, j] = exp(x[i, j] - t)
            if i > 0:
                y[i, j] = e[i - 1, j] / e[i, j]
            else:
                y[i, j] = x[i, j]
    return y


def since_the_start(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        t = x[i, 0]
        start = t
        for j in range(x.shape[1]):
            t = max(t, x[i, j])
        y[i] = exp(t - start)
    return y


def steps(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        t = x[i, 0]
        for j in range(x.shape[1]):
            before = t
            t = max(t, x[i, j])
            y[i, j] = exp(before - t)
    return y


def doubled_between(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        t = x[i, 0]
        for j in range(x.shape[1]):
            t = max(t, x[i, j])
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - t)
        t = t * 2.0
        s = 0.0
        for j in range(x.shape[1]):
            s += exp(x[i, j] - t)
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] / s
    return y


def so_far(x):
    y = output_tensor(x.shape, x.dtype)
    t = allocate((1,), x.dtype)
    t[0] = x[0, 0]
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            t[0] = max(t[0], x[i, j])
            s += exp(x[i, j] - t[0])
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - t[0]) / s
    return y


BOUND = (not_divided, partly_divided, sometimes_divided, times_top, log_sum_below_top, with_one_more)
BOUND += (over_all_rows, over_the_row_before)
CHANGING = (since_the_start, steps, doubled_between, so_far)


@pytest.mark.slow(1)
@pytest.mark.parametrize("function", [*FREE, *BOUND, *CHANGING])
def test_gradients(function):
    for seed in range(3):
        x = np.random.default_rng(seed).normal(size=(3, 4))
        differences.check_elements(differences.Derived(function, [x]), [x], rough=1e-5)


@pytest.mark.slow(5)
@pytest.mark.parametrize("function", FREE)
def test_it_gets_no_gradient(function):
    op = Custom(function, func_type="hybrid")
    for name in FREE[function]:
        assert f"no output depends on {name}: it gets no gradient" in explained(op)
    looks = "last = max(last, " in loops(op)
    assert looks == (function is returned_too)  # which element is returned
    assert "d_a" not in loops(op)
    assert ("d_b" in loops(op)) == (function is one_of_two)


@pytest.mark.slow(1)
@pytest.mark.parametrize("function", [*BOUND, *CHANGING])
def test_all_others_get_a_gradient(function):
    assert "no output depends on" not in explained(Custom(function, func_type="hybrid"))


@pytest.mark.slow
@pytest.mark.parametrize("tape", ["auto", "all", "none"])
@pytest.mark.parametrize("function", [softmax, two, since_the_start])
def test_with_saved_temporaries(function, tape):
    op = Custom(kernel(function, compile_attrs={"tape": tape}), func_type="hybrid")
    x = torch.randn(2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    assert torch.autograd.gradcheck(op, (x,))
    assert torch.autograd.gradgradcheck(op, (x,))


def of_columns(x):
    y = output_tensor((x.shape[1],), x.dtype)
    s = allocate((x.shape[1],), x.dtype)
    for i in range(x.shape[0]):
        t = x[i, 0]
        for j in range(x.shape[1]):
            t = max(t, x[i, j])
        for j in range(x.shape[1]):
            y[j] += exp(x[i, j] - t)
        for j in range(x.shape[1]):
            s[j] += exp(-t)
    for j in range(x.shape[1]):
        y[j] = y[j] / s[j]
    return y


def test_a_saved_temporary_that_starts_as_zeros():
    x = np.random.default_rng(0).normal(size=(3, 4))
    derived = differences.Derived(of_columns, [x])
    handing = saving(derived.kernel, "all")
    results = interpret(handing, [x], {})  # in the author's order, as with debug=
    y, t, s, winner = (results[handing.outputs.index(name)] for name in ("y", "t", "s", "t_winner"))
    assert len(results) == 4
    np.testing.assert_allclose(s, np.full(4, np.exp(-x.max(1)).sum()), rtol=1e-12)
    np.testing.assert_allclose(t, x.max(1))
    np.testing.assert_array_equal(winner, x.argmax(1))
    np.testing.assert_allclose(y, derived.outputs([x])[0], rtol=1e-12)


@pytest.mark.parametrize(("kind", "rough"), [(torch.float16, 4e-3), (torch.bfloat16, 3e-2)])
def test_half_types(kind, rough):
    op = Custom(softmax, func_type="hybrid")
    x = torch.randn(3, 5, generator=torch.Generator().manual_seed(0)).to(kind).requires_grad_()
    cotangent = torch.linspace(-1, 1, 15).reshape(3, 5).to(kind)
    op(x).backward(cotangent)
    exact = x.detach().double().requires_grad_()
    torch.softmax(exact, 1).backward(cotangent.double())
    torch.testing.assert_close(x.grad.double(), exact.grad, rtol=0, atol=rough)


def loops(op):
    return op.operator.gradient.loops(Spec((3, 4), dtype("float64")))


def explained(op):
    return explain(op, (Spec((3, 4), dtype("float64")),))
