"""``with_gradient``: a part of a kernel with its author's derivative, in every mode and framework."""

# ruff: noqa: F821 - the words of the language

import jax
import numpy as np
import pytest
import torch
from jax.test_util import check_grads

from derive_samples import differences
from polyop import Custom, kernel
from polyop.core.errors import ArgumentTypeError, PolyopError
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.printing import shown
from polyop.loops.passes.strip_gradient_marks import without_marks


def log_sum_exp(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        largest = x[i, 0]
        for j in range(1, x.shape[1]):
            largest = max(largest, x[i, j])
        top = stop_gradient(largest)
        terms = 0.0
        for j in range(x.shape[1]):
            terms += exp(x[i, j] - top)
        total = top + log(terms)
        y[i] = stop_gradient(total)
        for j in range(x.shape[1]):
            y[i] += with_gradient(0.0, x[i, j], exp(x[i, j] - total))
    return y


def softplus(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            value = max(x[i, j], 0.0) + log(1.0 + exp(-abs(x[i, j])))
            y[i, j] = with_gradient(value, x[i, j], 1.0 / (1.0 + exp(-x[i, j])))
    return y


def product(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        y[i] = 0.0
        for j in range(1, x.shape[1]):
            a = sin(x[i, j])
            b = x[i, j - 1] * x[i, 0]
            y[i] += with_gradient(a * b, a, b, b, a)
    return y


def in_a_scan(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        state = 0.0
        for j in range(x.shape[1]):
            before = x[i, j] + 0.5 * state
            state = with_gradient(tanh(before), before, 1.0 - tanh(before) * tanh(before))
            y[i, j] = state * state if x[i, j] > 0 else state
    return y


RIGHT = (log_sum_exp, softplus, product, in_a_scan)


@pytest.mark.slow(1)
@pytest.mark.parametrize("function", RIGHT)
def test_against_differences(function):
    random = np.random.default_rng(0)
    derived = differences.Derived(function, [random.normal(size=(3, 4))])
    for shape in ((3, 4), (1, 1), (2, 7)):
        differences.check_elements(derived, [random.normal(size=shape)])


@pytest.mark.slow
@pytest.mark.parametrize("function", RIGHT)
def test_torch_differentiates_it_twice_and_forwards(function):
    x = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1), requires_grad=True)
    op = Custom(function, func_type="hybrid")
    assert torch.autograd.gradcheck(op, [x], check_forward_ad=True, check_batched_grad=True)
    assert torch.autograd.gradgradcheck(op, [x])
    np.testing.assert_allclose(op(x).detach(), kernel(function).python(x.detach().numpy()), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("function", RIGHT)
def test_jax_differentiates_it_twice_and_forwards(function):
    with jax.enable_x64(True):
        x = jax.numpy.asarray(np.random.default_rng(2).normal(size=(3, 4)))
        op = Custom(function, func_type="hybrid")
        check_grads(lambda value: op(jax.numpy.asarray(value)), (x,), order=2, modes=["rev", "fwd"])


def of_the_author(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = with_gradient(x[i] * x[i], x[i], 7.0 * x[i], sin(x[i]), 100.0)
    return y


@pytest.mark.slow
def test_the_slope_is_the_authors_though_it_be_wrong():
    x = torch.linspace(-1, 2, 5, dtype=torch.float64, requires_grad=True)
    op = Custom(of_the_author, func_type="hybrid")
    assert torch.equal(op(x), x * x)
    slope = 7 * x + 100 * x.cos()
    (first,) = torch.autograd.grad(op(x).sum(), x, create_graph=True)
    torch.testing.assert_close(first, slope)
    second = torch.autograd.grad(first.sum(), x)[0]
    torch.testing.assert_close(second, 7 - 100 * x.sin())
    moved = torch.func.jvp(op, (x.detach(),), (torch.full_like(x, 2),))[1]
    torch.testing.assert_close(moved, 2 * slope)
    rows = torch.func.vmap(torch.func.grad(lambda row: op(row).sum()))(torch.stack([x, 2 * x]).detach())
    torch.testing.assert_close(rows[1], 14 * x + 100 * (2 * x).cos())


def test_it_costs_nothing_in_the_forward():
    typed = parse(log_sum_exp, [("float32", 2)], {})
    left = without_marks(typed)
    text = shown(left)
    assert "with_gradient" not in text
    assert "stop_gradient" not in text
    assert text.count("for ") == 3
    assert text.endswith("        y[i] = total\n    return y\n")
    x = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    np.testing.assert_array_equal(interpret(left, [x])[0], interpret(typed, [x])[0])


def for_the_slope_alone(x):
    y = output_tensor(x.shape, x.dtype)
    slopes = allocate(x.shape, x.dtype)
    for i in range(x.shape[0]):
        slopes[i] = exp(x[i])
    for i in range(x.shape[0]):
        if x[i] > 0:
            y[i] = with_gradient(x[i], x[i], slopes[i])
    return y


def test_what_slopes_alone_read_is_not_computed():
    typed = parse(for_the_slope_alone, [("float64", 1)], {})
    text = shown(without_marks(typed))
    assert "slopes" not in text
    assert text.count("for ") == 1
    op = Custom(for_the_slope_alone, func_type="hybrid")
    x = torch.tensor([-1.0, 1.0, 2.0], requires_grad=True, dtype=torch.float64)
    op(x).sum().backward()
    torch.testing.assert_close(x.grad, torch.where(x > 0, x.exp(), 0).detach())


def four(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = with_gradient(x[i], x[i], 1.0, x[i])
    return y


def two(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = with_gradient(x[i], 1.0)
    return y


@pytest.mark.parametrize(("function", "count"), [(four, 4), (two, 2)])
def test_pairs_are_pairs(function, count):
    rule = rf"with_gradient takes three inputs, and two for each further pair, but got {count}"
    with pytest.raises(ArgumentTypeError, match=rule) as caught:
        Custom(function, func_type="hybrid")
    assert "write with_gradient(value, x, slope): the derivative by x is slope" in str(caught.value)
    assert f"test_own_gradient.py:{function.__code__.co_firstlineno + 3}" in str(caught.value)


def of_a_whole_value(x, k):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = with_gradient(k[i], x[i], 1.0)
    return y


def by_a_whole_number(x, k):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = with_gradient(x[i], k[i], 1.0)
    return y


def by_a_loop(x, k):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = with_gradient(x[i] + k[i], i, 1.0)
    return y


def with_a_whole_slope(x, k):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = with_gradient(x[i], x[i], k[i])
    return y


@pytest.mark.parametrize(
    ("function", "rule", "seen"),
    [
        (of_a_whole_value, "the value of with_gradient must be floating", "int32"),
        (by_a_whole_number, "the expression to differentiate by of with_gradient must be floating", "int32"),
        (by_a_loop, "the expression to differentiate by of with_gradient must be floating", "int"),
        (with_a_whole_slope, "the slope of with_gradient must be floating", "int32"),
    ],
)
def test_its_inputs_are_floating(function, rule, seen):
    with pytest.raises(PolyopError, match=rule) as caught:
        parse(function, [("float32", 1), ("int32", 1)], {})
    assert seen in str(caught.value)
    assert "float32(n)" in str(caught.value)
    assert f"test_own_gradient.py:{function.__code__.co_firstlineno + 3}" in str(caught.value)


def of_python_numbers(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] + with_gradient(0, x[i], 2)
    return y


@pytest.mark.slow(1)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_python_number_takes_the_dtype_of_the_pairs(dtype):
    typed = parse(of_python_numbers, [(dtype, 1)], {})
    assert f"{dtype}(" not in shown(typed)
    assert "with_gradient(0.0, x[i], 2.0)" in shown(typed)
    x = torch.ones(3, dtype=getattr(torch, dtype), requires_grad=True)
    Custom(of_python_numbers, func_type="hybrid")(x).sum().backward()
    assert x.grad.tolist() == [3, 3, 3]


def test_an_index_outside_is_an_error_also_in_a_value_that_nothing_reads():
    """The author's unused statements stay; only what slopes alone have read is left out."""

    def unused(x, w):
        y = output_tensor((1,), x.dtype)
        first = x[0]
        slope = 2 * w[0]
        first -= with_gradient(first, first, 1.0)
        y[0] += with_gradient(0.0, w[0], slope)
        return y

    op = kernel(unused, name="own_gradient::unused")
    np.testing.assert_array_equal(op(np.ones(1), np.ones(1)), [0])
    for run in (op, op.python):
        with pytest.raises((PolyopError, IndexError), match=r"index"):
            run(np.ones(0), np.ones(1))
    text = shown(without_marks(parse(unused, [("float64", 1)] * 2, {})))
    assert "first = x[0]" in text
    assert "slope" not in text
