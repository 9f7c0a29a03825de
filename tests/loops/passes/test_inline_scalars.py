"""Scalars that one statement reads are written out, where the values that they are made of are still there."""
# ruff: noqa: F821 - the language's words are not names of this module

import numpy as np
import pytest

import polyop
from loop_samples.small import named_sum
from polyop.loops.derive.forms import adjoint
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.grammar import Assign, statements
from polyop.loops.ir.interpret import interpret
from polyop.loops.passes.inline_scalars import inline_scalars
from polyop.loops.program import Program


def chain(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        a = 2 * x[i]
        b = a + 1
        y[i] = b * x[i]
    return y


def overwritten_between(x):
    for i in range(x.shape[0]):
        old = 3 * x[i]
        x[i] = 1.0
        x[i] += old
    return x


def scalar_changed_between(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        a = x[i]
        b = 2 * a
        a += 7.0
        y[i] = b + a
    return y


def swapped(x):
    for i in range(x.shape[0] - 1):
        kept = x[i]
        x[i] = x[i + 1]
        x[i + 1] = kept
    return x


def read_in_a_loop(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        half = 0.5 * x[i]
        for j in range(x.shape[0]):
            y[j] += half
    return y


def slow_value(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        grown = exp(x[i])
        y[i] = grown + 1
    return y


SCALARS = {  # that are left
    chain: 0, overwritten_between: 1, scalar_changed_between: 3, swapped: 1, read_in_a_loop: 1, slow_value: 1,
}  # fmt: skip
X = np.array([0.5, -0.25, 3.0, -2.0, 1.5])


@pytest.mark.parametrize("function", SCALARS)
def test_values_are_those_of_python(function):
    kernel = parse(function, [("float64", 1)], {})
    after = inline_scalars(Program(kernel)).kernel
    (mine,), (before,) = interpret(after, [X.copy()], {}), interpret(kernel, [X.copy()], {})
    np.testing.assert_array_equal(mine, before)
    assert sum(isinstance(node, Assign) for node in statements(after.body)) == SCALARS[function]


def test_the_gradient_keeps_no_adjoint_of_a_sum_with_a_name():
    kernel = parse(named_sum, [("float64", 1)] * 2, {})
    assert not any(b.role == "local" for b in adjoint(kernel, [True]).kernel.buffers.values())
    x, c = X, np.arange(5.0)
    _, pull = polyop.kernel(named_sum).vjp(x, c)
    slopes, step = pull(np.ones(5)), 1e-6
    for which, slope in enumerate(slopes):
        for k, unit in enumerate(np.eye(5) * step):
            sides = [
                np.sum(named_sum_of(x + s * unit * (which == 0), c + s * unit * (which == 1)))
                for s in (1, -1)
            ]
            assert slope[k] == pytest.approx((sides[0] - sides[1]) / (2 * step), abs=1e-6)


def named_sum_of(x, c):
    return c[1:-1] * (x[:-2] + x[2:] - 2 * x[1:-1])
