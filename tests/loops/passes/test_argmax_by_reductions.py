# ruff: noqa: F821 - the words of the language
"""Searches for the greatest element become reductions: the same element is found, whatever the numbers are."""

import numpy as np
import pytest

from polyop import Custom
from polyop.core.errors import KernelError
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.grammar import Assign, statements
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.schedule import Schedule
from polyop.loops.pipeline import schedule

pytestmark = pytest.mark.filterwarnings("error")  # a pass that fails gives a FallbackWarning


def first_greatest(x):
    y = output_tensor((x.shape[0],), "int64")
    for i in range(x.shape[0]):
        best = 0
        for j in range(1, x.shape[1]):
            if x[i, j] > x[i, best]:
                best = j
        y[i] = best
    return y


def last_greatest(x):
    y = output_tensor((x.shape[0],), "int64")
    for i in range(x.shape[0]):
        best = 0
        for j in range(x.shape[1]):
            if x[i, best] <= x[i, j]:
                best = j
        y[i] = best
    return y


def first_least_and_its_place(x):
    y = output_tensor((x.shape[0],), "int64")
    z = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        y[i] = 0
        z[i] = x[i, 0]
        for j in range(1, x.shape[1]):
            if x[i, j] < z[i]:
                z[i] = x[i, j]
                y[i] = 3 * j - 1
    return y, z


def last_least_of_a_part(x):
    y = output_tensor((x.shape[0],), "int64")
    z = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        least = x[i, 0]
        place = -1
        for j in range(2, x.shape[1] - 1):
            if x[i, j - 1] <= least:
                least = x[i, j - 1]
                place = j
        y[i] = place
        z[i] = least
    return y, z


def first_greatest_but_the_last(x):
    y = output_tensor((x.shape[0],), "int64")
    for i in range(x.shape[0]):
        best = -1
        for j in range(x.shape[1]):
            if x[i, j] > x[i, best]:
                best = j
        y[i] = best
    return y


def last_greatest_and_the_one_before_it(x):
    y = output_tensor((x.shape[0],), "int64")
    z = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        top = x[i, 0]
        for j in range(1, x.shape[1]):
            if top <= x[i, j]:
                top = x[i, j]
                y[i] = i * x.shape[1] + j
                z[i] = x[i, j - 1]
    return y, z


SEARCHES = [first_greatest, last_greatest, first_least_and_its_place, last_least_of_a_part]
SEARCHES += [first_greatest_but_the_last, last_greatest_and_the_one_before_it]


def of_each_column(x):
    y = output_tensor((x.shape[1],), "int64")
    for j in range(x.shape[1]):
        best = 0
        for i in range(1, x.shape[0]):
            if x[i, j] > x[best, j]:
                best = i
        y[j] = best
    return y


def counts_the_records(x):
    y = output_tensor((x.shape[0],), "int64")
    for i in range(x.shape[0]):
        top = x[i, 0]
        y[i] = 0
        for j in range(1, x.shape[1]):
            if x[i, j] > top:
                top = x[i, j]
                y[i] = y[i] + 1
    return y


def keeps_another(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        top = x[i, 0]
        for j in range(1, x.shape[1]):
            if x[i, j] > top:
                top = x[i, j - 1]
        y[i] = top
    return y


def shortest_few(x):
    y = output_tensor((x.shape[0],), "int64")
    for i in range(x.shape[0]):
        best = 0
        for j in range(7):
            if x[i, j] > x[i, best]:
                best = j
        y[i] = best
    return y


def two_in_one_loop(x):
    y = output_tensor((x.shape[0], 2), "int64")
    for i in range(x.shape[0]):
        for j in range(1, x.shape[1]):
            if x[i, j] > x[i, y[i, 0]]:
                y[i, 0] = j
            if x[i, j] < x[i, y[i, 1]]:
                y[i, 1] = j
    return y


def the_greatest_before(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        top = x[i, 0]
        for j in range(1, x.shape[1]):
            if x[i, j] > top:
                y[i] = top
                top = x[i, j]
    return y


def kept_twice(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        top = x[i, 0]
        for j in range(1, x.shape[1]):
            if x[i, j] > top:
                top = x[i, j]
                top = x[i, 1]
        y[i] = top
    return y


OTHERS = [of_each_column, counts_the_records, keeps_another, shortest_few]
OTHERS += [two_in_one_loop, the_greatest_before, kept_twice]


def rows(dtype, columns):
    """Return rows with one greatest element, with many, with infinities, zeros of both signs, and NaN."""
    random = np.random.default_rng(0)
    plain = random.permutation(columns)
    few = random.integers(0, 3, columns)
    table = [plain, few, few - 5, np.zeros(columns), -plain]
    if np.issubdtype(dtype, np.floating):
        first, last, all_of_them = (few.astype(dtype) for _ in range(3))
        first[:1], last[-1:], all_of_them[:] = np.nan, np.nan, np.nan
        middle = np.where(few == 1, np.nan, plain)
        signs = np.where(few == 1, 0.0, -0.0)
        endless = np.where(few == 2, np.inf, -np.inf)
        table += [first, last, all_of_them, middle, signs, endless, np.full(columns, -np.inf)]
    return np.array(table).astype(dtype)


def check(function, dtype):
    op = Custom(function, func_type="hybrid")
    kernel = parse(function, [(dtype, 2)], {})
    for columns in (8, 33, 200):
        x = rows(np.dtype(dtype), columns)
        results = op(x)
        for one, other in zip(
            results if isinstance(results, tuple) else (results,), interpret(kernel, [x], {}), strict=True
        ):
            np.testing.assert_array_equal(one, other, err_msg=str(columns))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "int64", "uint8"])
@pytest.mark.parametrize("function", [*SEARCHES, *OTHERS])
def test_other_dtypes(function, dtype):
    check(function, dtype)


@pytest.mark.slow(2)
@pytest.mark.parametrize("function", [*SEARCHES, *OTHERS])
def test_equal_to_the_function_run_as_python(function):
    check(function, "float32")


@pytest.mark.slow(1)
@pytest.mark.parametrize("function", SEARCHES)
def test_a_row_of_one_element(function):
    x = np.array([[2.0], [np.nan]], "float32")
    result = Custom(function, func_type="hybrid")(x)
    assert (result[0] if isinstance(result, tuple) else result).tolist() in ([0, 0], [-1, -1])


def reductions(function):
    program = schedule(parse(function, [("float32", 2)], {}))
    return [s.op for s in statements(program.kernel.body) if isinstance(s, Assign) and s.op]


@pytest.mark.parametrize("function", SEARCHES)
def test_the_greatest_and_its_place_are_reductions(function):
    first = "max" if "greatest" in function.__name__ else "min"
    assert reductions(function) == [first, "min" if "first" in function.__name__ else "max"]


@pytest.mark.parametrize("function", OTHERS)
def test_other_loops_stay_as_they_are(function):
    assert reductions(function) == []


def test_a_loop_that_the_schedule_names_stays_as_it_is():
    kernel = parse(first_greatest, [("float32", 2)], {})
    program = schedule(kernel, steps=Schedule().tile("j", 8))
    assert [s.op for s in statements(program.kernel.body) if isinstance(s, Assign) and s.op] == []


def test_an_index_that_is_outside_is_an_error_as_before():
    def beyond(x, start):
        y = output_tensor((x.shape[0],), "int64")
        for i in range(x.shape[0]):
            best = start[i]
            for j in range(x.shape[1]):
                if x[i, j] > x[i, best]:
                    best = j
            y[i] = best
        return y

    op = Custom(beyond, func_type="hybrid")
    x = np.arange(40, dtype="float32").reshape(2, 20)
    assert op(x, np.array([3, -1])).tolist() == [19, -1]
    with pytest.raises(KernelError, match=r"dimension 1 of x, which has size 20"):
        op(x, np.array([3, 20]))
    assert op(x[:, :0], np.array([3, 20])).tolist() == [3, 20]


def in_order(x):
    y = output_tensor((x.shape[0],), "int64")
    for i in range(x.shape[0]):
        best = 0
        for j in serial(1, x.shape[1]):
            if x[i, j] > x[i, best]:
                best = j
        y[i] = best
    return y


DONE = "done by two reductions, which have vector lanes"
NOTES = [
    (first_greatest, f"loop j: a search for the greatest element, {DONE}"),
    (last_greatest, f"loop j: a search for the greatest element, {DONE}"),
    (first_least_and_its_place, f"loop j: a search for the least element, {DONE}"),
    (
        of_each_column,
        "loop i: a search for the greatest element, left as it is: its elements are not adjacent in memory",
    ),
    (
        shortest_few,
        "loop j: a search for the greatest element, left as it is: it has fewer than 16 iterations",
    ),
    (in_order, "loop j: a search for the greatest element, left as it is: serial() asks for its order"),
    (counts_the_records, None),
    (keeps_another, None),
]


def notes_of(function, steps=None):
    program = schedule(parse(function, [("float32", 2)], {}), steps=steps or Schedule())
    return [note.text for note in program.notes if note.kind == "argmax_by_reductions"]


@pytest.mark.parametrize(("function", "text"), NOTES)
def test_what_becomes_of_a_search_is_said(function, text):
    assert notes_of(function) == ([] if text is None else [text])


def test_a_search_that_the_schedule_names_is_said_to_stay():
    (text,) = notes_of(first_greatest, Schedule().tile("j", 8))
    assert text == "loop j: a search for the greatest element, left as it is: the schedule names it"
