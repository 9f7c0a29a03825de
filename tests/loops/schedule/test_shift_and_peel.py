# ruff: noqa: F821 - kernels, whose words are no names here
"""Shift-and-peel: which loops run together, with results equal to the last bit to those of separate loops."""

import functools

import numpy as np
import pytest

import instruction_sets
import polyop
from loop_samples.built_once import INCLUDE
from loop_samples.variants import variant
from polyop.core.spec import Spec
from polyop.kernels.loop.kernel import LoopKernel
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.plan import Plan
from polyop.loops.passes.strip_gradient_marks import without_marks
from polyop.loops.pipeline import schedule
from polyop.loops.program import Program
from polyop.loops.schedule.shift_and_peel import MAX_MEMBERS, shift_and_peel

SIZES = ((0, 5), (1, 1), (2, 9), (5, 4), (8, 20), (13, 17), (24, 9), (41, 33))
THREADS = (1, 2, 3, 7)


def blurred(x, steps):
    t = output_tensor(x.shape, x.dtype)
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(1, x.shape[1] - 1):
            t[i, j] = x[i, j - 1] + x[i, j] + x[i, j + 1]
    for i in range(1, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 1):
            y[i, j] = t[i - 1, j] + t[i, j] + t[i + 1, j]
    return y, t


def iterated(x, steps):
    y = allocate(x.shape, x.dtype)
    for _ in range(steps):
        for i in range(2, x.shape[0] - 1):
            for j in range(x.shape[1]):
                y[i, j] = x[i - 2, j] + x[i + 1, j]
        for i in range(2, x.shape[0] - 1):
            for j in range(x.shape[1]):
                x[i, j] = y[i, j] - x[i, j]
    return x


def overwritten(x, steps):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0] - 3):
        for j in range(x.shape[1]):
            y[i, j] = x[i + 3, j]
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] = 7
    return y, x


def three(x, steps):
    y = output_tensor(x.shape, x.dtype)
    z = output_tensor(x.shape, x.dtype)
    w = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] + 1
            w[i, j] = 0
    for i in range(1, x.shape[0] - 1):
        for j in range(x.shape[1]):
            z[i, j] = y[i - 1, j] + y[i + 1, j]
    for i in range(2, x.shape[0] - 4):
        for j in range(x.shape[1]):
            w[i, j] = z[i + 2, j] - y[i - 2, j] + z[i - 1, j]
    return w, y, z


def lanes(x, steps):
    y = output_tensor((x.shape[0] * 100,), x.dtype)
    z = output_tensor((x.shape[0] * 100,), x.dtype)
    for _ in range(steps):
        for i in range(x.shape[0] * 100):
            y[i] = x[0, 0] + i
        for i in range(1, x.shape[0] * 100 - 1):
            z[i] = y[i - 1] - 2 * y[i] + y[i + 1]
    return z, y


def with_scalars(x, steps):
    y = allocate(x.shape, x.dtype)
    z = output_tensor(x.shape, x.dtype)
    for s in range(steps):
        by = x[0, 0] + s
        for i in range(1, x.shape[0]):
            for j in range(x.shape[1]):
                y[i, j] = x[i, j] * by
        for i in range(2, x.shape[0]):
            for j in range(x.shape[1]):
                z[i, j] = y[i - 1, j] + s
    return z


def range_of_the_first(x, steps):
    """The first loop writes a bound of the second one."""
    n = output_tensor((x.shape[0],), "int64")
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        n[i] = steps
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] + 1
    for i in range(min(n[0], 4, x.shape[0])):
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] * 2
    return y, n


def inner_range_of_the_first(x, steps):
    n = output_tensor((x.shape[0],), "int64")
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        n[i] = i % steps
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] + 1
    for i in range(1, x.shape[0]):
        for j in range(min(n[i - 1], x.shape[1])):
            y[i, j] = y[i, j] * 2
    return y, n


# two loops over rows; the kernels below change how the second one reads what the first one wrote
TWO_LOOPS = """
def f(x, steps):
    y = output_tensor(x.shape, x.dtype)
    z = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] + 1
    for i in range(1, x.shape[0]):
        for j in range(x.shape[1]):
            z[i, j] = y[i, j]
    return y, z
"""
reversed_rows = variant("reversed_rows", TWO_LOOPS, ("= y[i, j]", "= y[x.shape[0] - 1 - i, j]"))
all_rows = variant("all_rows", TWO_LOOPS, ("= y[i, j]", "= y[j % x.shape[0], j]"))
nothing_shared = variant("nothing_shared", TWO_LOOPS, ("= y[i, j]", "= steps"))

TOGETHER = {
    blurred: [(0, 0), (1, 1)],
    iterated: [(0, 0), (2, 1)],
    overwritten: [(0, 0), (0, 3)],
    three: [(0, 0), (1, 1), (3, 2)],
    lanes: [(0, 0), (1, 1)],
    with_scalars: [(0, 0), (0, 1)],
    inner_range_of_the_first: [(0, 0), (0, 1)],
}
"""For each loop (behind, inset), worked out by hand from the indices."""
APART = (reversed_rows, all_rows, nothing_shared, range_of_the_first)
ALL = (*TOGETHER, *APART)
STEPS = 3
pytestmark = pytest.mark.filterwarnings("ignore::polyop.UninitialisedWarning")


@functools.cache
def typed(function):
    return parse(function, [("float64", 2)], {"steps": STEPS})


@pytest.mark.parametrize("function", ALL)
def test_which_loops_and_how_far_behind(function):
    groups = schedule(typed(function)).plan.bands
    assert [[(m.behind, m.inset) for m in g] for g in groups] == (
        [TOGETHER[function]] if function in TOGETHER else []
    )


@pytest.fixture(scope="session", params=instruction_sets.EACH)
def compiled(request, batch):
    """Return a function from a kernel to its operator; threads and bands are used for any size."""
    path = batch.build(batch.text(map(typed, ALL), request.param), "-DPOLYOP_GRAIN=1")
    rows = [("float64", ["n", "m"], "")]

    @functools.cache
    def of(function):
        return batch.bound(function, rows, {"steps": STEPS}, path, ALL.index(function))

    return of


@pytest.mark.slow(18)
@pytest.mark.parametrize("function", ALL)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_on_any_number_of_threads(function, size, compiled, batch):
    x = np.random.default_rng(size).integers(-9, 9, size).astype(np.float64)
    if function in (lanes, with_scalars, range_of_the_first) and not x.size:
        return  # they read x[0, 0] or n[0]
    expected = interpret(typed(function), [x], {"steps": STEPS})
    run = compiled(function)
    for threads in THREADS:
        with batch.threads(threads):
            for one, other in zip(expected, run(x.copy()), strict=True):
                np.testing.assert_array_equal(other, one, strict=True)


@pytest.mark.slow
def test_random_chains(batch, generate):
    texts = [generate.chain(f"chain {k}") for k in range(60)]
    functions = [generate.function_of(text) for text in texts]
    kernels = [parse(f, [("float64", 2)] * 3, {}) for f in functions]
    grouped = [bool(schedule(kernel).plan.bands) for kernel in kernels]
    assert sum(grouped) > 30
    path = batch.build(batch.text(kernels, instruction_sets.BEST), "-DPOLYOP_GRAIN=1")
    tensors = [("float64", ["n", "m"], "")] * 3
    for number, (function, kernel) in enumerate(zip(functions, kernels, strict=True)):
        run = batch.bound(function, tensors, {}, path, number)
        for size in ((3, 9), (7, 5), (12, 20), (31, 11)):
            inputs = [np.random.default_rng([k, *size]).integers(-9, 9, size) * 1.0 for k in range(3)]
            expected = interpret(kernel, [a.copy() for a in inputs])
            for threads in (1, 2, 5):
                with batch.threads(threads):
                    results = run(*(a.copy() for a in inputs))
                for one, other in zip(expected, results, strict=True):
                    np.testing.assert_array_equal(other, one, err_msg=f"{threads} threads\n{texts[number]}")


def test_where_isl_gives_up_loops_run_one_after_another():
    kernel = without_marks(typed(blurred))
    for operations in (0, 1):  # 0: as many as it takes
        plan = Plan(threads={"i", "i_1"}, vector={"j", "j_1"})
        program = Program(kernel, plan=plan)
        assert program.conflicts
        program.session.context.set_max_operations(operations)
        program = shift_and_peel(program)
        give_up_notes = [note for note in program.notes if "isl cannot tell in time" in note.text]
        assert (len(program.plan.bands), len(give_up_notes)) == (1 - operations, operations)


def test_the_greatest_band_is_that_of_the_header():
    header = (INCLUDE / "polyop/loops/bands.h").read_text()
    assert f"enum {{ POLYOP_MEMBERS = {MAX_MEMBERS} }};" in header


def test_explain_names_the_loop_that_another_runs_with():
    x = Spec((4, 5), polyop.dtype("float64"))
    lines = LoopKernel(blurred, ("steps",)).explain((x,), {"steps": 3})
    assert any("loop i_1: runs together with the one of line" in line for line in lines), lines
