"""Sums of 1 and a hyperbolic tangent become quotients, with the values of a sum that loses no digits."""
# ruff: noqa: F821 - the language's words are not names of this module

import mpmath
import numpy as np
import pytest

from polyop import Custom
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.grammar import Op, statements, walk
from polyop.loops.pipeline import schedule


def sum_with_one(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = 1.0 + tanh(x[i])
    return y


def one_on_the_right(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = tanh(0.5 * x[i]) + 1.0
    return y


def difference(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = 1.0 - tanh(x[i])
    return y


def tanh_itself_too(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = (1.0 + tanh(x[i])) * tanh(x[i])
    return y


def in_a_sum_and_a_difference(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = (1.0 + tanh(x[i])) * (1.0 - tanh(x[i]))
    return y


def another_number(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = 1.5 + tanh(x[i])
    return y


def less_one(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = tanh(x[i]) - 1.0
    return y


def one_in_another(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = 1.0 + tanh(1.0 + tanh(x[i]))
    return y


def steep(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = 1.0 + tanh(3.0e38 * x[i])
    return y


EXACT = {
    sum_with_one: lambda x: 2 / (1 + mpmath.exp(-2 * x)),
    one_on_the_right: lambda x: 2 / (1 + mpmath.exp(-x)),
    difference: lambda x: 2 / (1 + mpmath.exp(2 * x)),
}


def functions(kernel):
    names = {"tanh", "exp", "/"}
    found = (e for node in statements(kernel.body) for e in walk(node) if isinstance(e, Op))
    return sorted(e.name for e in found if e.name in names)


@pytest.mark.parametrize("function", EXACT)
def test_an_exponential_and_a_division_are_left(function):
    program = schedule(parse(function, [("float32", 1)], {}))
    assert set(functions(program.kernel)) == {"/", "exp"}
    assert [note.text[:11] for note in program.notes if note.kind == "tanh_by_exp"] == [
        "1 - tanh(u)" if function is difference else "1 + tanh(u)"
    ]


OTHERS = [tanh_itself_too, in_a_sum_and_a_difference, another_number, less_one]


@pytest.mark.parametrize("function", OTHERS)
def test_others_are_left_alone(function):
    program = schedule(parse(function, [("float32", 1)], {}))
    assert set(functions(program.kernel)) == {"tanh"}
    assert not any(note.kind == "tanh_by_exp" for note in program.notes)


def test_of_two_sums_in_each_other_the_inner_one_is_changed():
    program = schedule(parse(one_in_another, [("float32", 1)], {}))
    assert functions(program.kernel) == ["/", "exp", "tanh"]
    assert len([note for note in program.notes if note.kind == "tanh_by_exp"]) == 1


def test_a_factor_that_would_overflow_is_left_where_it_is():
    values = Custom(steep, func_type="hybrid")(np.array([-1, -1e-39, 0, 1e-39, 1], "float32"))
    np.testing.assert_allclose(values, 1 + np.tanh([-3e38, -0.3, 0, 0.3, 3e38]), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_floats_are_left_alone(dtype):
    assert set(functions(schedule(parse(sum_with_one, [(dtype, 1)], {})).kernel)) == {"tanh"}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", EXACT)
def test_the_values_are_right_to_four_units_in_the_last_place(function, dtype):
    x = np.concatenate([np.linspace(-18, 18, 997), np.linspace(-1e-3, 1e-3, 64)]).astype(dtype)
    with mpmath.workdps(40):
        exact = np.array([EXACT[function](mpmath.mpf(float(one))) for one in x])
        error = np.array([float(a) for a in abs(Custom(function, func_type="hybrid")(x) - exact)])
    unit = np.spacing(exact.astype(dtype))
    assert (error / unit).max() <= 4


@pytest.mark.parametrize("function", EXACT)
def test_the_ends_are_those_of_the_sum(function):
    x = np.array([-np.inf, -1e30, -200, 200, 1e30, np.inf, np.nan, 0, -0.0], "float32")
    numpy_sum = {
        sum_with_one: 1 + np.tanh(x),
        one_on_the_right: np.tanh(x / 2) + 1,
        difference: 1 - np.tanh(x),
    }
    np.testing.assert_array_equal(Custom(function, func_type="hybrid")(x), numpy_sum[function])
