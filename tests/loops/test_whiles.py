# ruff: noqa: F821 - kernels, whose words are no names here
"""Loops whose number of iterations nobody knows: each keeps its own end, whatever stands beside it."""

import signal
from dataclasses import replace

import numpy as np
import pytest

import polyop
from polyop.core.errors import ScheduleError
from polyop.loops.derive.forms import batched
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.grammar import INT, Const, For, Op, statements
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.printing import shown
from polyop.loops.ir.stops import exit_flags, is_unbounded, misplaced_exits
from polyop.loops.ir.verify import violations
from polyop.loops.pipeline import original, schedule


def neighbours(x):
    """Floats count, so nothing is known of how often these loops run."""
    y = output_tensor((2,), x.dtype)
    k = 0 * x[0]
    while k < 3:
        k += 1
        y[0] += x[0]
    m = 0 * x[0]
    while m < 3:
        m += 1
        y[1] += x[1]
    return y


def of_one_condition(x):
    """The second loop starts where the first one stopped, and the third has no iteration."""
    y = output_tensor(x.shape, x.dtype)
    k = 0
    while k < x.shape[0] // 2:
        y[k] = x[k] * 2
        k += 1
    while k < x.shape[0]:
        y[k] = x[k] + 1
        k += 1
    while k < x.shape[0]:
        y[k] = 100
        k += 1
    return y


def beside_a_for(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * 2
    k = 0
    while k < x.shape[0]:
        y[k] += 1
        k += 1
    for i in range(x.shape[0]):
        y[i] += x[i]
    return y


def beside_a_for_of_its_bound(x):
    """A break before 2**62 iterations, twice, and a while between."""
    y = output_tensor((3,), x.dtype)
    for i in range(2**62):
        if i >= x.shape[0]:
            break
        y[0] += x[i]
    n = 0
    while n < x.shape[0]:
        y[1] += x[n]
        n += 1
    for i in range(2**62):
        if i >= x.shape[0]:
            break
        y[2] += y[0] * x[i]
    return y


def in_a_for_in_a_while(x):
    y = output_tensor(x.shape, x.dtype)
    rounds = 0
    while rounds < 3:
        rounds += 1
        for i in range(x.shape[0]):
            v = x[i]
            while v > 1:
                v = v / 2
                y[i] += 1
            w = x[i]
            while w < 8:
                w = w * 2 + 1
                y[i] += 10
    return y


def breaks_and_continues(x):
    y = output_tensor((3,), x.dtype)
    k = 0
    while k < 2 * x.shape[0]:
        k += 1
        if k % 2 == 0:
            continue
        if k > x.shape[0]:
            break
        y[0] += x[k - 1]
    m = 0
    while True:
        m += 1
        if m > x.shape[0]:
            break
        if x[m - 1] < 2:
            continue
        y[1] += x[m - 1]
    for i in range(x.shape[0]):
        if x[i] > 5:
            break
        y[2] += x[i]
    for i in range(x.shape[0]):
        if x[i] < 3:
            continue
        y[2] += 1
    return y


def halvings(v, limit):
    n = 0
    while v > limit:
        v = v / 2
        n += 1
    return n


def place_of(x, v):
    """Only a return ends the loop, so no line follows it."""
    k = 0
    while True:
        if k >= x.shape[0]:
            return -1
        while x[k] < v:
            k += 1
            if k == x.shape[0]:
                break
        if k < x.shape[0] and x[k] == v:
            return k
        k += 1


def ends_by_returns(x):
    y = output_tensor(x.shape, x.dtype)
    k = 0
    while True:
        if k == x.shape[0]:
            return y
        y[k] = place_of(x, x[k]) * 10 + place_of(x, k)
        k += 1


def in_helpers(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = halvings(x[i], 1) + 10 * halvings(x[i], 0.25)
    for i in range(x.shape[0]):
        y[i] += 100 * halvings(y[i], 2)
    return y


def written_out(x):
    """The loop around is unrolled, so the same while stands there four times."""
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for _ in range(4):
            v = x[i] + y[i]
            while v > 1:
                v = v / 2
                y[i] += 1
    return y


def returns(x):
    """Two loops that leave the function; the second one is a while in a for."""
    y = output_tensor(x.shape, x.dtype)
    k = 0
    while k < x.shape[0]:
        if x[k] > 7:
            return y
        y[k] += 1
        k += 1
    for i in range(x.shape[0]):
        n = 0
        while True:
            n += 1
            if n > x[i]:
                break
            if n > 5:
                return y
            y[i] += n
    return y


def rows(x):
    """Loops over columns in two whiles: what an iteration does has lanes."""
    y = output_tensor(x.shape, x.dtype)
    k = 0 * x[0]
    while k < 3:
        k += 1
        for i in range(x.shape[0]):
            y[i] += x[i] * k
    m = 0 * x[0]
    while m < 2:
        m += 1
        for i in range(x.shape[0]):
            y[i] += y[x.shape[0] - 1 - i] * m
    return y


def of_data(x):
    """Conditions read what the loops write."""
    y = output_tensor(x.shape, x.dtype)
    z = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        while y[i] < x[i]:
            y[i] += 1
        while z[i] < y[i] and z[i] < 4:
            z[i] += 0.5
    return y, z


KERNELS = (
    neighbours,
    of_one_condition,
    beside_a_for,
    beside_a_for_of_its_bound,
    in_a_for_in_a_while,
    breaks_and_continues,
    in_helpers,
    ends_by_returns,
    written_out,
    returns,
    rows,
    of_data,
)
VALUES = (
    np.array([1.0, 2.0]),
    np.array([4.0, 0.0, 6.0, 1.0, 3.0], np.float32),
    np.array([0.5, 8.0, 3.0], np.float32),
    np.arange(19) % 7 * np.float64(0.75),
)


@pytest.fixture(autouse=True)
def _deadline():
    """A kernel that does not end is interrupted."""

    def raised(*_):
        raise TimeoutError("the kernel did not end")

    before = signal.signal(signal.SIGALRM, raised)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def typed(function):
    return parse(function, [("float32", 1)], {})


def same(results, expected):
    as_tuple = [value if isinstance(value, (tuple, list)) else (value,) for value in (results, expected)]
    for one, other in zip(*as_tuple, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow(2)
@pytest.mark.parametrize("function", KERNELS, ids=lambda f: f.__name__)
def test_each_loop_ends_where_it_ends_in_python(function):
    operator = polyop.kernel(function, name=f"whiles::{function.__name__}")
    for x in VALUES:
        same(operator(x), operator.python(x))


@pytest.mark.parametrize("function", KERNELS, ids=lambda f: f.__name__)
def test_the_interpreter_ends_after_the_passes_and_so_does_what_is_printed(function):
    x = VALUES[1]
    kernel = typed(function)
    for body in (kernel, schedule(kernel).kernel, original(kernel).kernel):
        same(interpret(body, [x]), list(interpret(kernel, [x])))
    assert shown(kernel).count("while not") == sum(
        isinstance(s, For) and is_unbounded(s) for s in statements(kernel.body)
    )


def test_loops_of_a_gpu_end(emulate, batch):
    table = emulate.build(emulate.text(map(typed, KERNELS)))
    for k, function in enumerate(KERNELS):
        run = batch.bound(function, [("float32", ["n"], "")], {}, table, k)
        for x in VALUES[1:3]:
            same(run(x.copy()), interpret(typed(function), [x]))


def test_a_schedule_cannot_join_two_whiles_or_cut_one():
    for words, schedule_ in (
        ("the loops step and step#2 have different ranges", polyop.Schedule().fuse("step", "step#2")),
        ("the loop step may end early", polyop.Schedule().unroll("step", 2)),
        ("the loop step may end early", polyop.Schedule().tile("step", 2)),
        ("step", polyop.Schedule().parallel("step")),
        ("step", polyop.Schedule().vectorize("step")),
    ):
        operator = polyop.kernel(neighbours, name="whiles::scheduled", schedule=schedule_)
        with pytest.raises(ScheduleError, match=words):
            operator(VALUES[0])


def test_the_verifier_refuses_a_while_that_lost_its_end():
    """What a pass could do wrong: join two loops, leave a guard out, or compute with an end."""
    kernel = typed(neighbours)
    assert not violations(kernel)
    first, second = (s for s in kernel.body if isinstance(s, For))
    flags = exit_flags(kernel)
    (of_second,) = flags - exit_flags(replace(kernel, body=(first,)))

    joined = replace(first, body=(*first.body, *second.body))
    inside = replace(first, body=(replace(first.body[0], body=(*first.body[0].body, *second.body)),))
    bare = replace(first, body=first.body[0].body)
    counted = replace(second, hi=Const(2**62, INT), body=second.body[0].body)
    half = replace(first, hi=Op("//", (first.hi, Const(2, INT)), INT))
    for wrong, words in (
        (joined, "nothing ends loop step"),
        (bare, "nothing ends loop step"),
        (inside, f"the exit {of_second} is in loop step, which does not end by it"),
        (counted, f"the exit {of_second} is in loop {second.var}, which does not end by it"),
        (half, "the end of the while step is used as a number"),
    ):
        assert words in "; ".join(misplaced_exits(replace(kernel, body=(wrong,)), flags))


@pytest.mark.slow
def test_gradients_tangents_and_batches_are_right():
    torch = pytest.importorskip("torch", reason="the operator's gradient is taken by PyTorch")
    operator = polyop.kernel(neighbours, name="whiles::derived")
    x = torch.tensor([1.0, 2.0])
    value, tangent = torch.func.jvp(operator, (x,), (torch.tensor([1.0, 10.0]),))
    assert value.tolist() == [3.0, 6.0]
    assert tangent.tolist() == [3.0, 30.0]
    rows = torch.tensor([[1.0, 2.0], [3.0, 4.0], [0.0, -1.0]])
    assert torch.equal(torch.vmap(operator)(rows), 3 * rows)
    operator(x.requires_grad_()).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def left_early(x, n: int = 2):
    y = output_tensor(x.shape, x.dtype)
    count = 0 * x[0]
    while True:
        count += 1
        if count > 3 or n != 3:
            break
        if x[0] <= count:
            return y
        y[0] += 1
    y[:] = x[1]
    return y


def test_a_flag_may_be_set_behind_its_while_in_the_loop_of_a_batch():
    """The last statements set the flag of the return once more; each sample begins with it unset."""
    kernel = batched(parse(left_early, [("float64", 1)], {"n": 2}), [0])
    flags = exit_flags(kernel)
    scheduled = schedule(kernel).kernel
    x = np.array([[1.0, 2.0], [4.0, 5.0], [2.0, 3.0], [3.0, 9.0]])
    for n in (2, 3):
        expected = np.stack([polyop.kernel(left_early).python(row, n) for row in x])
        for one in (kernel, scheduled):
            np.testing.assert_array_equal(interpret(one, [x], {"n": n})[0], expected)
    (samples,) = kernel.body
    later = replace(samples, body=samples.body[-2:])
    assert "which does not end by it" in "; ".join(misplaced_exits(replace(kernel, body=(later,)), flags))
