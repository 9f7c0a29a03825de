# ruff: noqa: F821 - kernels, whose words are no names here
"""A while that counts is a loop with a bound; where that might change a value it stays a while."""

import re

import numpy as np
import pytest

import polyop
from loop_samples import counted
from loop_samples.counted import CARRIED, COUNTED, STAY
from polyop.loops.frontend import counted_whiles, parse
from polyop.loops.ir.grammar import For, If, statements
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.stops import is_unbounded, stop_flags
from polyop.loops.ir.verify import violations
from polyop.loops.listing import listing
from polyop.loops.pipeline import schedule

INPUTS = (
    (np.array([1.0, 4.0, 2.5, 7.0, 3.0]), np.array([2, 7, 1], np.int8), 4),
    (np.array([6.0]), np.array([126, 127, 1], np.int8), 0),
    (np.arange(1.0, 9.0), np.array([3, -3, 2], np.int8), -5),
)


def typed(function):
    return parse.parse(function, [("float64", 1), ("int8", 1)], {"a": int})


def whiles(kernel):
    return [s for s in statements(kernel.body) if isinstance(s, For) and is_unbounded(s)]


@pytest.mark.parametrize("function", COUNTED, ids=lambda f: f.__name__)
def test_what_counts_has_a_bound(function):
    assert whiles(typed(function)) == []


@pytest.mark.parametrize("function", STAY, ids=lambda f: f.__name__)
def test_what_may_go_on_stays_a_while(function):
    assert len(whiles(typed(function))) == 1


@pytest.mark.parametrize("function", [*COUNTED, *STAY, *CARRIED], ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_values_are_those_of_python(function, monkeypatch):
    kernel = typed(function)
    monkeypatch.setattr(parse, "with_counted_whiles", lambda kernel: kernel)
    as_written = typed(function)
    assert whiles(as_written)
    assert violations(kernel) == []
    operator = polyop.kernel(function, name=f"counted::{function.__name__}")
    for x, p, a in INPUTS:
        expected = operator.python(x, p, a)
        for one in (as_written, kernel, schedule(kernel).kernel):
            np.testing.assert_array_equal(interpret(one, [x, p], {"a": a})[0], expected)


def test_a_loop_without_other_exits_has_no_flag():
    for function in (
        counted.upwards,
        counted.downwards,
        counted.by_steps_and_behind,
        counted.first_and_last,
        counted.nested,
        counted.two_counters,
    ):
        kernel = typed(function)
        assert not any(isinstance(s, For) and stop_flags(s) for s in statements(kernel.body))
        assert not any(isinstance(s, If) for s in statements(kernel.body))


def with_for(x, p, a: int):
    y = output_tensor(x.shape, x.dtype)
    for k in range(x.shape[0]):
        y[k] = 2 * x[k]
    return y


def test_a_counted_loop_has_the_roles_of_its_for():
    as_while, as_for = schedule(typed(counted.upwards)), schedule(typed(with_for))
    (role,), (role_of_for,) = (re.findall(r"for k .*# (.+)", listing(one)) for one in (as_while, as_for))
    assert role == role_of_for
    assert role.startswith("threads, vector")


FAR = 2**63 - 1


def to_the_largest(x, p, a: int):
    """A bound of any int64, and a break that ends the loop."""
    y = output_tensor((4,), "int64")
    k = 0
    while k <= a:
        if k >= 3:
            break
        y[0] += 1
        k += 1
    y[1] = k
    k = 0
    while k < a:
        if k > 5:
            break
        y[2] += 1
        k += 2
    y[3] = k
    return y


def from_the_largest(x, p, a: int):
    y = output_tensor((2,), "int64")
    k = a
    while k > 0:
        if k < a - 2:
            break
        y[0] += 1
        k -= 1
    y[1] = k
    return y


def ends_at_its_last_test(x, p, a: int):
    y = output_tensor((2,), "int64")
    k = a
    while True:
        y[0] += 1
        if k >= x.shape[0]:
            break
        if y[0] > 9:
            break
        k += 1
    y[1] = k
    return y


def two_from_anywhere(x, p, a: int):
    y = output_tensor((3,), "int64")
    k = 0
    j = a
    while k < 5 and j < 5:
        y[0] += 1
        k += 1
        j += 1
    y[1] = k
    y[2] = j
    return y


def of_nothing(x, p, a: int):
    y = output_tensor((1,), "int64")
    k = a - 3 if a > 0 else a
    while k < a:
        k += 1
    y[0] = k
    return y


@pytest.mark.parametrize(
    "function",
    [to_the_largest, from_the_largest, ends_at_its_last_test, two_from_anywhere, of_nothing],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("a", [FAR, FAR - 1, 2**62, -FAR, -FAR - 1, 4, 0])
def test_bounds_at_the_ends_of_int64(function, a):
    x, p = np.ones(2), np.zeros(1, np.int8)
    kernel = typed(function)
    expected = polyop.kernel(function, name=f"counted::{function.__name__}").python(x, p, a)
    np.testing.assert_array_equal(interpret(kernel, [x, p], {"a": a})[0], expected)
    np.testing.assert_array_equal(interpret(schedule(kernel).kernel, [x, p], {"a": a})[0], expected)


def strided(x, stride: int):
    y = output_tensor((2,), x.dtype)
    y[0] = 0
    k = 0
    while k < x.shape[0]:
        y[0] = y[0] * 2 + x[k]
        k += stride
    y[1] = k
    return y


def test_a_step_that_is_an_attribute_becomes_a_constant():
    operator = polyop.kernel(strided, name="counted::strided")
    loops, row = operator.operator.kernels[0], polyop.Spec((5,), "float64")
    assert len(whiles(loops.typed([row], {"stride": 0}))) == 1
    assert whiles(loops.typed([row], {"stride": 2})) == []
    x = np.arange(5.0)
    for stride in (1, 2, 3, 64, 65):
        np.testing.assert_array_equal(operator(x, stride), operator.python(x, stride))


def test_counters_and_their_loops_keep_their_names():
    kernel = typed(counted.nested)
    assert [s.var for s in statements(kernel.body) if isinstance(s, For)] == ["i", "j"]
    assert counted_whiles.with_counted_whiles(kernel) is kernel
