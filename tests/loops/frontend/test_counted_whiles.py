# ruff: noqa: F821 - kernels, whose words are no names here
"""A while that counts is a loop with a bound; where that might change a value it stays a while."""

import numpy as np
import pytest

import polyop
from polyop.loops.frontend import counted_whiles, parse
from polyop.loops.ir.grammar import For, If, statements
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.stops import is_unbounded, stop_flags
from polyop.loops.ir.verify import violations
from polyop.loops.pipeline import schedule


def upwards(x, p, a: int):
    y = output_tensor(x.shape, x.dtype)
    k = 0
    while k < x.shape[0]:
        y[k] = 2 * x[k]
        k += 1
    return y


def downwards(x, p, a: int):
    y = output_tensor(x.shape, x.dtype)
    k = x.shape[0] - 1
    while k >= 0:
        y[k] = x[k] + k
        k -= 1
    return y


def by_steps_and_behind(x, p, a: int):
    y = output_tensor((x.shape[0] + 2,), x.dtype)
    k = 1
    j = 0
    while x.shape[0] > k:
        y[j] = x[k]
        k = 3 + k
        j += 1
    y[x.shape[0]] = k
    y[x.shape[0] + 1] = j
    return y


def never_and_behind(x, p, a: int):
    y = output_tensor((2,), x.dtype)
    k = 7
    while k < x.shape[0] - 100:
        k += 2
    y[0] = k
    m = x.shape[0]
    while m <= 0:
        m += 1
    y[1] = m
    return y


def first_and_last(x, p, a: int):
    """The step comes first, and the test last."""
    y = output_tensor(x.shape, x.dtype)
    k = -1
    while k < x.shape[0] - 1:
        k += 1
        y[k] = x[k]
    m = 0
    while True:
        y[m] += m
        m += 1
        if m >= x.shape[0]:
            break
    return y


def unequal(x, p, a: int):
    y = output_tensor(x.shape, x.dtype)
    k = 0
    while k != x.shape[0]:
        y[k] = x[k] - 1
        k += 1
    return y


def nested(x, p, a: int):
    y = output_tensor((x.shape[0], x.shape[0]), x.dtype)
    i = 0
    while i < x.shape[0]:
        j = i
        while j < x.shape[0]:
            y[i, j] = x[i] * x[j]
            j += 1
        i += 1
    return y


def two_counters(x, p, a: int):
    y = output_tensor(x.shape, x.dtype)
    i = 0
    j = x.shape[0] - 1
    while i < j:
        y[i] = x[j]
        y[j] = x[i]
        i += 1
        j -= 1
    return y


def of_an_attribute(x, p, a: int):
    y = output_tensor((1,), x.dtype)
    k = 0
    while k < a:
        y[0] += k
        k += 1
    m = 0
    while m <= a:
        y[0] += m
        m += 3
    return y


def of_elements(x, p, a: int):
    y = output_tensor((2,), x.dtype)
    k = p[0]
    while k < p[1]:
        y[0] += k
        k += 1
    y[1] = k
    return y


def of_a_step_that_is_positive(x, p, a: int):
    y = output_tensor((3,), x.dtype)
    k = 0
    while k < x.shape[0]:
        y[0] += k
        k += x.shape[0] // 4 + 1
    y[1] = k
    step = min(max(a, 1), 64)
    m = x.shape[0]
    while m > 0:
        y[2] += m
        m -= step
    return y


def with_other_exits(x, p, a: int):
    """The counter is read behind a loop that a break may leave."""
    y = output_tensor((3,), x.dtype)
    k = 0
    while k < x.shape[0] and x[k] < 5:
        y[0] += x[k]
        k += 1
    y[1] = k
    k = 0
    while True:
        k += 1
        if k > x.shape[0]:
            break
        if x[k - 1] > 5:
            break
        y[0] += x[k - 1]
    y[2] = k
    return y


def in_front_of_continue(x, p, a: int):
    y = output_tensor(x.shape, x.dtype)
    k = -1
    while k + 1 < x.shape[0]:
        k += 1
        if x[k] > 2:
            continue
        y[k] = x[k]
    return y


COUNTED = (
    upwards,
    downwards,
    by_steps_and_behind,
    never_and_behind,
    first_and_last,
    unequal,
    nested,
    two_counters,
    of_an_attribute,
    of_elements,
    of_a_step_that_is_positive,
    with_other_exits,
    in_front_of_continue,
)


def bound_changes(x, p, a: int):
    y = output_tensor(x.shape, x.dtype)
    n = x.shape[0]
    k = 0
    while k < n:
        if x[k] > 3:
            n -= 1
        y[k] = n
        k += 1
    return y


def bound_is_written(x, p, a: int):
    y = output_tensor((2,), "int64")
    y[0] = x.shape[0]
    k = 0
    while k < y[0]:
        y[0] -= 1
        y[1] += k
        k += 1
    return y


def only_sometimes(x, p, a: int):
    y = output_tensor((1,), x.dtype)
    k = 0
    t = 0
    while k < x.shape[0] and t < 100 * x[0] + 100:
        if x[k] > 2 or t > k:
            k += 1
        else:
            t += 1
            y[0] += 1
    return y


def twice(x, p, a: int):
    y = output_tensor((1,), x.dtype)
    k = 0
    while k < x.shape[0]:
        k += 1
        y[0] += x[k % x.shape[0]]
        if x[0] > 1:
            k += 1
    return y


def of_a_float(x, p, a: int):
    y = output_tensor((1,), x.dtype)
    v = 0.0
    while v < 1:
        v += 0.1
        y[0] += 1
    return y


def step_may_be_zero(x, p, a: int):
    y = output_tensor((1,), x.dtype)
    k = 1
    while k < x.shape[0]:
        y[0] += 1
        if y[0] > 4:
            break
        k += min(max(a, 0), 9)
    return y


def may_pass_its_end(x, p, a: int):
    y = output_tensor((1,), x.dtype)
    k = 0
    while k != 2 * (x.shape[0] // 2):
        y[0] += k
        k += 2
    return y


def may_wrap(x, p, a: int):
    """A counter of 8 bits that runs to a size: it wraps around, and the break is what ends the loop."""
    y = output_tensor((1,), x.dtype)
    k = p[0]
    while k < x.shape[0] + 200:
        y[0] += 1
        if k == -100:
            break
        k += 1
    return y


STAY = (
    bound_changes,
    bound_is_written,
    only_sometimes,
    twice,
    of_a_float,
    step_may_be_zero,
    may_pass_its_end,
    may_wrap,
)
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


@pytest.mark.parametrize("function", [*COUNTED, *STAY], ids=lambda f: f.__name__)
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
    for function in (upwards, downwards, by_steps_and_behind, first_and_last, nested, two_counters):
        kernel = typed(function)
        assert not any(isinstance(s, For) and stop_flags(s) for s in statements(kernel.body))
        assert not any(isinstance(s, If) for s in statements(kernel.body))


def with_for(x, p, a: int):
    y = output_tensor(x.shape, x.dtype)
    for k in range(x.shape[0]):
        y[k] = 2 * x[k]
    return y


def test_a_counted_loop_has_the_roles_of_its_for():
    counted, written = schedule(typed(upwards)), schedule(typed(with_for))
    assert counted.plan == written.plan
    assert counted.plan.vector == {"k"}


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


@pytest.mark.parametrize("function", [to_the_largest, from_the_largest], ids=lambda f: f.__name__)
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
    kernel = typed(nested)
    assert [s.var for s in statements(kernel.body) if isinstance(s, For)] == ["i", "j"]
    assert counted_whiles.with_counted_whiles(kernel) is kernel
