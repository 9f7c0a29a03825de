# ruff: noqa: F821 - kernels, whose words are no names here
"""Divisions in derived kernels that become products of reciprocals, and those that stay."""

import functools
import re

import numpy as np
import pytest
import torch

from derive_samples.differences import Derived, check_elements
from polyop import Custom
from polyop.core.errors import KernelError
from polyop.loops.derive.forms import adjoint
from polyop.loops.emit.printer import source as source_of
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.grammar import Load, Op, statements, walk
from polyop.loops.ir.interpret import interpret
from polyop.loops.listing import listing
from polyop.loops.pipeline import schedule
from polyop.loops.targets import isa


def by_row(x, s):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] / s[i]
    return y


def by_sum(x, s):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        over = 0.0
        for j in range(x.shape[1]):
            over += x[i, j] * x[i, j]
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * s[i] / over
    return y


def by_root(x, s):
    """What is divided by has a name inside the loop: it is left alone."""
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        over = 0.0
        for j in range(x.shape[1]):
            over += x[i, j] * x[i, j]
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] / sqrt(over + s[i])
    return y


def by_size(x, s):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i] += x[i, j] * s[i] / x.shape[1]
    return y


def by_element(x, s):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = s[i] / x[i, j]
    return y


def by_constant(x, s):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * s[i] / 3
    return y


def under_condition(x, s):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] / s[j] if j < s.shape[0] else x[i, j]
    return y


def in_branch(x, s):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > 1:
                y[i, j] = x[i, j] / s[i]
    return y


def of_chain(x, s):
    """What is divided by is what the row before gave."""
    y = output_tensor((x.shape[0] + 1, x.shape[1]), x.dtype)
    for j in range(x.shape[1]):
        y[0, j] = 1
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i + 1, j] = x[i, j] / y[i, 0] * s[i]
    return y


def changed_meanwhile(x, s):
    """The divisor is written in the loop that divides by it."""
    y = output_tensor((x.shape[1] + 1,), x.dtype)
    y[0] = 1
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j] = x[i, j] / (y[0] + 2) * s[i]
    return y


def two_divisors(x, s):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(1, x.shape[1]):
            y[i, j] = x[i, j] / s[i] / (s[i] + 1) - x[i, j - 1] / (x[i, j] + s[i])
    return y


def by_whole_number(x, s):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * ((j + 5) // (i + 1)) * s[i]
    return y


HOISTED = (by_row, by_sum, by_size, of_chain, two_divisors)
KEPT = (by_root, by_element, by_constant, under_condition, in_branch, by_whole_number)
ALL = (*HOISTED, *KEPT, changed_meanwhile)
SIZES = ((1, 1), (3, 5), (4, 2), (2, 9))


@functools.cache
def gradient(function, dtype="float64"):
    return adjoint(parse(function, [(dtype, 2), (dtype, 1)], {}), (True,)).kernel


def arrays(n, m):
    random = np.random.default_rng([n, m])
    return [random.uniform(0.5, 2, (n, m)), random.uniform(1, 2, n)]


@pytest.mark.slow(10)
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("function", ALL)
def test_against_differences(function, size):
    inputs = arrays(*size)
    derived = Derived(function, inputs)
    derived.backward = schedule(derived.backward).kernel
    check_elements(derived, inputs, rough=2e-6)


@pytest.mark.parametrize("function", [*HOISTED, *KEPT])
def test_which_divisions_become_products(function):
    text = listing(schedule(gradient(function, "float32")))
    assert bool(re.search(r" = 1\.0 / .* if ", text)) == (function in HOISTED)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_types_are_divided(dtype):
    """A reciprocal that is rounded to them would be too far off."""
    kernel = schedule(gradient(by_row, dtype)).kernel
    divisions = [e for s in statements(kernel.body) for e in walk(s) if isinstance(e, Op) and e.name == "/"]
    assert len(divisions) == 2
    assert all(isinstance(e.args[1], Load) and e.args[1].buffer == "s" for e in divisions)


def test_divisions_of_the_author_stay():
    source = source_of(schedule(parse(by_row, [("float32", 2), ("float32", 1)], {})), isa.available()[0], "f")
    assert "1.0f /" not in source
    x = torch.rand(7, 33) + 0.5
    s = torch.rand(7) + 0.5
    op = Custom(by_row, func_type="hybrid")
    assert torch.equal(op(x, s), x / s[:, None])
    assert torch.equal(op(x.requires_grad_(), s), x / s[:, None])  # where a gradient is wanted as well
    assert torch.equal(torch.vmap(op)(x[None], s[None])[0], x / s[:, None])


@pytest.mark.parametrize("value", [0.0, -0.0, np.inf, -np.inf, np.nan, 3e38, 2e-38, 1e-40, -1e-40, 1e-45])
def test_special_divisors(value):
    op = Custom(by_row, func_type="hybrid")
    x = torch.tensor([[1.0, -2, 0, np.inf, np.nan, 3e-38, 7, 8, 9]]).repeat(2, 1).requires_grad_()
    s = torch.tensor([value, 2.0], requires_grad=True)
    above = torch.tensor([1.0, 0, -1, np.inf, np.nan, 1e-30, 2, 3, 4]).repeat(2, 1)
    (x_grad,) = torch.autograd.grad(op(x, s), x, above)
    torch.testing.assert_close(x_grad, above / s[:, None].detach(), rtol=1e-6, atol=0, equal_nan=True)


@pytest.mark.parametrize("size", [(4, 0), (0, 4), (0, 0)])
def test_loops_that_never_run_divide_by_nothing(size):
    """Rows without elements have no divisor either."""
    op = Custom(by_row, func_type="hybrid")
    x, s = torch.zeros(size, requires_grad=True), torch.zeros(0, requires_grad=True)
    y = op(x, s)
    for grad, tensor in zip(torch.autograd.grad(y, (x, s), torch.ones_like(y)), (x, s), strict=True):
        assert grad.shape == tensor.shape


def test_a_divisor_that_is_not_there_is_an_error():
    op = Custom(by_row, func_type="hybrid")
    with pytest.raises(KernelError, match="s, which has size 2"):
        op(torch.ones(3, 4), torch.ones(2))


@pytest.mark.parametrize("function", ALL)
def test_the_scheduled_kernel_gives_what_the_derived_one_does(function):
    x, s = arrays(5, 3)
    kernel = gradient(function)
    (out,) = interpret(parse(function, [("float64", 2), ("float64", 1)], {}), [x, s], {})
    inputs = [x, s, out, np.random.default_rng(0).normal(size=out.shape)]
    names = [n for n in kernel.parameters if n in kernel.buffers]
    absent = [kernel.buffers[n].absent for n in names]
    inputs = [np.zeros((), bool) if flag else a for flag, a in zip(absent, inputs, strict=True)]
    rows = (interpret(k, inputs, {}) for k in (kernel, schedule(kernel).kernel))
    for one, other in zip(*rows, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-13)
