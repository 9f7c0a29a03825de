"""The same bits whatever the batch: what explain says of loop kernels, and the check that compares bytes."""
# ruff: noqa: F821 - the words of the language

import contextlib
import inspect
import re
import types

import numpy as np
import pytest

import batch_kernels
import polyop
from loop_samples.programs import PROGRAMS
from polyop.call.explain import explain
from polyop.core.errors import ArgumentValueError, ScheduleError
from polyop.testing.case import BrokenRuleError, Case, NotRunError, spec_of
from polyop.testing.dims.bits import ENOUGH, _batch, _compare, same_bits_in_a_batch, threads
from polyop.testing.dims.rule import rule_of
from polyop.testing.dims.slices import Dimension

FLOATS = (np.float16, np.float32, np.float64)


softmax, linear = map(polyop.kernel(deterministic="batch"), (batch_kernels.softmax, batch_kernels.linear))


@polyop.kernel(deterministic="batch")
def linear_transposed(x, w):
    y = output_tensor((x.shape[0], w.shape[0]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(w.shape[0]):
            total = 0.0
            for k in range(w.shape[1]):
                total += x[i, k] * w[j, k]
            y[i, j] = total
    return y


@polyop.kernel(deterministic="batch")
def lanes_of_rows(x, a):
    """Its rows are the lanes of vectors; a product in it does not change with the row."""
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i] + a[0] * a[1] - sin(x[i]) * x[i]
    return y


@polyop.kernel(deterministic="batch")
def recurrence(x, a):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        state = 0.0
        for t in range(x.shape[1]):
            state = a[i, t] * state + x[i, t]
            y[i, t] = state
    return y


def column_sums(x):
    y = output_tensor(x.shape, x.dtype)
    total = output_tensor((x.shape[1],), x.dtype)
    for k in range(x.shape[1]):
        total[k] = 0.0
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            y[i, k] = 2.0 * x[i, k]
            total[k] += x[i, k]
    return y, total


shared = polyop.kernel(column_sums, name="bits::shared")
in_order = polyop.kernel(column_sums, name="bits::in_order", deterministic="batch")


def normal(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def said_of(op, *arrays):
    return explain(op, tuple(spec_of(x) for x in arrays))


def checked(op, *arrays):
    return same_bits_in_a_batch(Case(op, arrays, None, ("numpy",), 0))


@pytest.mark.slow(1)
@pytest.mark.parametrize(
    ("op", "shapes", "names"),
    [
        (softmax, [(5, 19)], "i"),
        (linear, [(5, 19), (19, 21)], "i, j"),
        (linear_transposed, [(5, 19), (21, 19)], "i, j"),
        (lanes_of_rows, [(5,), (2,)], "i"),
        (recurrence, [(5, 19), (5, 19)], "i"),
        (in_order, [(5, 19)], "k"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_rows_have_the_same_bits_in_any_batch(op, shapes, names):
    arrays = [normal(*shape) for shape in shapes]
    assert checked(op, *arrays) == f"along {names}"
    said = f"the same for a row alone and in a batch along {names.replace(',', '')} of any size"
    assert said in said_of(op, *arrays)


def copied(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = max(abs(x[i]), 1) / 2
    return y


def scaled(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * 2 + 1
    return y


def waves(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = sin(x[i])
    return y


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (copied, "the same for a row alone and in a batch along i"),
        (scaled, r"may differ by rounding: the C compiler may fuse .* \(line \d+\).*deterministic=\"batch\""),
        (waves, "may differ by rounding"),
    ],
)
def test_of_a_kernel_without_the_option_only_what_is_proved_is_said(function, words):
    """A product that is added to something, and functions made of both, are the C compiler's to fuse."""
    said = said_of(polyop.kernel(function, name=f"bits::plain_{function.__name__}"), normal(5))
    assert re.search(rf"bits +{words}", said), said


def test_a_limit_of_tapes_is_no_promise_of_bits():
    """Beyond the limit another kernel computes the gradient."""
    op = polyop.kernel(
        recurrence.python, name="bits::limited", deterministic="batch", compile_attrs={"tape_bytes": 1 << 20}
    )
    assert "bits        may differ with the sizes: for each, tape_bytes decides" in said_of(
        op, normal(5, 19), normal(5, 19)
    )


def test_the_batch_is_large_enough_for_several_threads():
    """A loop runs on several threads where its cost is above a limit, which these elements exceed."""
    case = Case(softmax, (normal(5, 19),), None, ("numpy",), 0)
    batch, rows = _batch(case, rule_of(case), Dimension("i"))
    assert batch.arguments[0].shape == (rows, 19)
    assert batch.arguments[0].size >= ENOUGH


def test_a_shared_sum_is_named_with_the_way_out():
    with pytest.raises(NotRunError) as untried:
        checked(shared, normal(5, 19))
    for text in (str(untried.value), said_of(shared, normal(5, 19))):
        assert "depend on the number of threads: each has its own part of total in loop i" in text
        assert 'deterministic="batch" keeps the sum in one thread' in text


def test_deterministic_keeps_a_sum_in_one_thread():
    x = normal(50_000, 3)
    results = []
    for count in (1, 2, 3):
        with threads(count):
            results.append([op(x)[1].tobytes() for op in (shared, in_order)])
    ours = {of_in_order for _, of_in_order in results}
    assert len(ours) == 1
    assert len({of_shared for of_shared, _ in results}) > 1, "the sums of threads are not in this kernel"


def test_the_gradient_of_a_deterministic_kernel_is_deterministic():
    text = said_of(in_order, normal(5, 19))
    assert 'derived_schedules={"backward": polyop.Schedule().deterministic()' in text


def test_a_sum_that_the_schedule_shares_out_is_refused():
    both = polyop.kernel(
        column_sums,
        name="bits::contradiction",
        schedule=polyop.Schedule().parallel("i"),
        deterministic="batch",
    )
    with pytest.raises(ScheduleError, match=r"the loop i reduces into total, and deterministic\(\)"):
        both(normal(5, 19))


def test_only_batch_is_a_kind_of_determinism():
    with pytest.raises(ArgumentValueError, match="'deterministic' must be \"batch\""):
        polyop.kernel(column_sums, deterministic="threads")


def test_the_check_finds_a_row_that_depends_on_its_batch():
    def scaled(x):
        return x * np.float32(1 + len(x) * 2.0**-20)

    op = polyop.operator("bits::scaled(Tensor x) -> Tensor", scaled, dims="n k -> n k", parallel="n")
    case = Case(op, (normal(5, 3),), None, ("numpy",), 0)
    with pytest.raises(BrokenRuleError, match="the bits of a row depend on its batch") as raised:
        _compare(case, rule_of(case), Dimension("n"))
    assert "rows 0:1 of n alone" in str(raised.value)


def annotated(program):
    """Return the program's function, with the types of its attributes."""
    function = program.function
    copied = types.FunctionType(function.__code__, function.__globals__, function.__name__)
    copied.__annotations__ = {name: type(value) for name, value in program.attributes.items()}
    return copied


@pytest.mark.slow
def test_no_kernel_of_which_explain_says_so_has_other_bits_in_a_batch():
    rng, compared = np.random.default_rng(0), 0
    for number, program in enumerate(PROGRAMS):
        symbols = dict.fromkeys(a for _, axes, below in program.rows for a in (*axes, below) if a)
        tensors = iter(program.arrays({symbol: 9 + 4 * k for k, symbol in enumerate(symbols)}))
        function = annotated(program)
        arguments = [program.attributes.get(n) for n in inspect.signature(function).parameters]
        arguments = [next(tensors) if a is None else a for a in arguments]
        arguments = [_drawn(a, rng) if getattr(a, "dtype", None) in FLOATS else a for a in arguments]
        op = polyop.kernel(
            function, name=f"bits::{program.function.__name__}_{number}", deterministic="batch"
        )
        with contextlib.suppress(NotRunError):
            compared += checked(op, *arguments).startswith("along")
    assert compared > len(PROGRAMS) // 2


def _drawn(array, rng):
    """Return positive numbers, whose sums round differently in each order."""
    return rng.uniform(0.5, 2.0, array.shape).astype(array.dtype)
