"""Stores that end both arms of a condition: one store behind it, with the values of the author's order."""
# ruff: noqa: F821 - the language's words are not names of this module

import warnings

import numpy as np
import pytest

import polyop
from loop_samples.small import by_sign
from polyop.loops.derive.pipelines import NORMAL_FORM
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.grammar import If, statements
from polyop.loops.ir.interpret import interpret
from polyop.loops.passes.if_conversion import if_conversion
from polyop.loops.pipeline import PIPELINE, schedule
from polyop.loops.program import Program


def two_arms(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if x[i] > 0:
            y[i] = x[i]
        else:
            y[i] = -2 * x[i]
    return y


def several_arms(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if x[i] > 1:
            y[i] = 1.0
        elif x[i] > 0:
            y[i] = x[i]
        elif x[i] > -1:
            y[i] = 0.0
        else:
            y[i] = -1.0
    return y


def sums(x):
    y = output_tensor((1,), x.dtype)
    y[0] = 0.0
    for i in range(x.shape[0]):
        if x[i] > 0:
            y[0] += x[i]
        else:
            y[0] += 1.0
    return y


def condition_that_is_overwritten(x):
    z = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if x[i] > 0:
            x[i] = -1.0
            z[i] = 1.0
        else:
            x[i] = 2.0
            z[i] = 0.0
    return x, z


def stored_and_read(x):
    y = output_tensor(x.shape, x.dtype)
    z = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if x[i] > 0:
            t = 2 * x[i]
            y[i] = t
            z[i] = y[i] + 1
        else:
            y[i] = 0.5
            z[i] = y[i] * x[i]
    return y, z


def index_from_the_arms(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = 0.0
    for i in range(x.shape[0]):
        if x[i] > 0:
            k = i
            y[k] += x[i]
        else:
            k = x.shape[0] - 1 - i
            y[k] += 1.0
    return y


def other_elements(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0] - 1):
        if x[i] > 0:
            y[i] = x[i]
        else:
            y[i + 1] = x[i]
    return y


def one_arm(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = 1.0
        if x[i] > 0:
            y[i] = x[i]
    return y


CONVERTED = {  # conditions that are left
    two_arms: 0, several_arms: 0, sums: 0, condition_that_is_overwritten: 0, stored_and_read: 1, by_sign: 1,
    index_from_the_arms: 0,
}  # fmt: skip
LEFT = (other_elements, one_arm)
X = np.array([0.5, -0.25, 3.0, -2.0, 0.0, np.nan, 1.5, -1.0], np.float32)


def typed(function):
    return parse(function, [("float32", 1)], {})


def conditions(kernel):
    return sum(isinstance(node, If) for node in statements(kernel.body))


@pytest.mark.parametrize("function", [*CONVERTED, *LEFT])
def test_values_are_those_of_python(function):
    kernel = typed(function)
    after = if_conversion(Program(kernel)).kernel
    before = interpret(kernel, [X.copy()], {})
    for mine, theirs in zip(interpret(after, [X.copy()], {}), before, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert conditions(after) == CONVERTED.get(function, conditions(kernel))
    bound = polyop.kernel(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other_elements leaves some unwritten
        compiled = bound(X.copy())
    for mine, theirs in zip(compiled if isinstance(compiled, tuple) else (compiled,), before, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


@pytest.mark.parametrize("function", [two_arms, several_arms, stored_and_read, by_sign])
def test_no_tensor_starts_as_zeros(function):
    program = schedule(typed(function))
    assert not any(buffer.zeroed for buffer in program.kernel.buffers.values())
    without = schedule(typed(function), passes=[one for one in PIPELINE if one.run is not if_conversion])
    assert any(buffer.zeroed for buffer in without.kernel.buffers.values())


def test_gradients_are_those_of_finite_differences():
    assert if_conversion in [one.run for one in NORMAL_FORM]
    x = np.array([0.7, -0.3, 2.0, -1.7])
    for function in (two_arms, stored_and_read, by_sign):
        bound = polyop.kernel(function)
        outputs, pull = bound.vjp(x)
        (slope,) = pull((np.ones(4),) * 2 if isinstance(outputs, tuple) else np.ones(4))
        step = 1e-6

        def total(at, bound=bound):
            return np.sum(bound(at), axis=0) if isinstance(bound(at), tuple) else bound(at)

        np.testing.assert_allclose(slope, (total(x + step) - total(x - step)) / (2 * step), atol=1e-6)
