# ruff: noqa: F821 - kernels, whose words are no names here
"""The loop that becomes the rows of a register tile is put directly around the lanes."""

import numpy as np
import pytest

import instruction_sets
from polyop import Schedule
from polyop.loops.emit.printer import source
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.pipeline import schedule
from polyop.loops.schedule.chosen import chosen


def convolution(x, w):
    rows, columns = x.shape[2] - w.shape[2] + 1, x.shape[3] - w.shape[3] + 1
    y = output_tensor((x.shape[0], w.shape[0], rows, columns), x.dtype)
    for n, o, i, j in grid((x.shape[0], w.shape[0], rows, columns)):
        y[n, o, i, j] = 0.0
        for c in range(x.shape[1]):
            for p in range(w.shape[2]):
                for q in range(w.shape[3]):
                    y[n, o, i, j] += x[n, c, i + p, j + q] * w[o, c, p, q]
    return y


def of_a_scalar(x, w):
    rows, columns = x.shape[2] - w.shape[2] + 1, x.shape[3] - w.shape[3] + 1
    y = output_tensor((x.shape[0], w.shape[0], rows, columns), x.dtype)
    for n in range(x.shape[0]):
        for o in range(w.shape[0]):
            for i in range(rows):
                for j in range(columns):
                    total = 0.0
                    for c in range(x.shape[1]):
                        for p in range(w.shape[2]):
                            for q in range(w.shape[3]):
                                total += x[n, c, i + p, j + q] * w[o, c, p, q]
                    y[n, o, i, j] = total
    return y


def depthwise(x, w):
    rows, columns = x.shape[2] - w.shape[2] + 1, x.shape[3] - w.shape[3] + 1
    y = output_tensor((x.shape[0], x.shape[1], rows, columns), x.dtype)
    for n in range(x.shape[0]):
        for c in range(x.shape[1]):
            for i in range(rows):
                for j in range(columns):
                    total = 0.0
                    for p in range(w.shape[2]):
                        for q in range(w.shape[3]):
                            total += x[n, c, i + p, j + q] * w[0, 0, p, q]
                    y[n, c, i, j] = total
    return y


def products(x, w):
    y = output_tensor((x.shape[0], x.shape[1], x.shape[2], w.shape[3]), x.dtype)
    for n in range(x.shape[0]):
        for o in range(x.shape[1]):
            for i in range(x.shape[2]):
                for j in range(w.shape[3]):
                    total = 0.0
                    for k in range(x.shape[3]):
                        total += x[n, o, i, k] * w[0, 0, k, j]
                    y[n, o, i, j] = total
    return y


def in_order(x, w):
    columns = x.shape[3] - w.shape[3] + 1
    y = output_tensor((x.shape[0], w.shape[0], x.shape[2], columns), x.dtype)
    for n in range(x.shape[0]):
        for o in serial(w.shape[0]):
            for i in range(x.shape[2]):
                for j in range(columns):
                    total = 0.0
                    for q in range(w.shape[3]):
                        total += x[n, 0, i, j + q] * w[o, 0, 0, q]
                    y[n, o, i, j] = total
    return y


def recurrence(x, w):
    """Each row of the result reads the one before, of the next channel: it must stay inside."""
    y = output_tensor((x.shape[0], w.shape[0], x.shape[2], x.shape[3]), x.dtype)
    for n in range(x.shape[0]):
        for o in range(w.shape[0]):
            for i in range(x.shape[2]):
                for j in range(x.shape[3]):
                    total = y[n, o - 1, i + 1, j] if o > 0 and i + 1 < x.shape[2] else x[n, 0, i, j] * 0
                    for q in range(w.shape[3]):
                        total += x[n, 0, i, j] * w[o, 0, 0, q]
                    y[n, o, i, j] = total
    return y


def less_the_largest(q, k):
    """The last loop cannot join the first two, whose fusion goes into a contraction."""
    y = output_tensor((q.shape[0], k.shape[0]), q.dtype)
    top = output_tensor((q.shape[0],), q.dtype)
    for i in range(q.shape[0]):
        top[i] = -100.0
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            for d in range(q.shape[1]):
                y[i, j] += q[i, d] * k[j, d]
            top[i] = max(top[i], y[i, j])
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            y[i, j] = y[i, j] - top[i]
    return y, top


CHANGED = (convolution, of_a_scalar)
KEPT = (depthwise, products, in_order, recurrence)
SIZES = (((2, 3, 9, 20), (7, 3, 3, 3)), ((1, 1, 4, 5), (2, 1, 2, 3)), ((2, 2, 3, 40), (13, 2, 1, 2)))
pytestmark = pytest.mark.filterwarnings("ignore::polyop.UninitialisedWarning")


def typed(function):
    return parse(function, [("float32", 4)] * 2, {})


@pytest.mark.parametrize("function", CHANGED)
def test_channels_are_put_directly_around_the_lanes(function):
    program = schedule(typed(function))
    assert program.applied == Schedule().interchange("n", "i", "o", "j").steps
    (lanes,) = program.plan.tiles
    assert (lanes, program.plan.tiles[lanes].row) == ("j", "o")


@pytest.mark.parametrize("function", KEPT)
def test_which_nests_stay(function):
    assert schedule(typed(function)).applied == ()


@pytest.mark.parametrize("function", [*CHANGED, *KEPT])
def test_the_schedule_that_was_chosen_gives_the_same_code(function):
    program = schedule(typed(function))
    again = schedule(typed(function), steps=chosen(program))
    assert source(again, "avx2", "f") == source(program, "avx2", "f")


def test_a_fusion_after_that_of_a_contraction_is_proved_too():
    kernel = parse(less_the_largest, [("float32", 2)] * 2, {})
    program = schedule(kernel)
    assert program.applied == Schedule().fuse("i", "i#2").steps
    assert schedule(kernel, steps=chosen(program)).kernel == program.kernel


@pytest.fixture(scope="session", params=instruction_sets.EACH)
def compiled(request, batch):
    """Return the operators, in the order of the kernels."""
    functions = [*CHANGED, *KEPT]
    path = batch.build(batch.text([typed(f) for f in functions], request.param), "-DPOLYOP_GRAIN=1")
    rows = [("float32", [*"nchw"], ""), ("float32", [*"ocpq"], "")]
    return {f: batch.bound(f, rows, {}, path, k) for k, f in enumerate(functions)}


@pytest.mark.slow(4)
@pytest.mark.parametrize("function", [*CHANGED, *KEPT])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_values(function, sizes, compiled, batch):
    x, w = (np.random.default_rng(k).integers(-3, 4, s).astype("float32") for k, s in enumerate(sizes))
    if function is products:
        w = np.random.default_rng(2).integers(-3, 4, (1, 1, x.shape[3], 19)).astype("float32")
    (expected,) = interpret(typed(function), [x, w], {})
    for threads in (1, 3):
        with batch.threads(threads):
            np.testing.assert_array_equal(compiled[function](x, w)[0], expected)
