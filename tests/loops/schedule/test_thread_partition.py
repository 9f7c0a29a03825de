# ruff: noqa: F821 - kernels, whose words are no names here
"""Thread partition: sequential loops whose work is divided by rows that an index picks, or by columns."""

import functools

import numpy as np
import pytest

from polyop.core.errors import KernelError
from polyop.loops.emit.c.shares import SEARCHED
from polyop.loops.emit.printer import notes as notes_of
from polyop.loops.emit.printer import source as source_of
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.pipeline import schedule
from polyop.loops.targets import isa


def added(x, at, like):
    y = output_tensor(like.shape, x.dtype)
    for i in range(at.shape[0]):
        for j in range(x.shape[1]):
            y[at[i], j] += x[i, j]
    return y


def greatest(x, at, like):
    y = output_tensor(like.shape, x.dtype)
    for i in range(at.shape[0]):
        for j in range(x.shape[1]):
            y[at[i], j] = max(y[at[i], j], x[i, j])
    return y


def last(x, at, like):
    y = output_tensor(like.shape, x.dtype)
    for i in range(at.shape[0]):
        for j in range(x.shape[1]):
            y[at[i], j] = x[i, j]
    return y


def last_positive(x, at, like):
    y = output_tensor(like.shape, x.dtype)
    for i in range(at.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > 0:
                y[at[i], j] = x[i, j]
    return y


def decayed(x, at, like):
    y = output_tensor(like.shape, x.dtype)
    for i in range(at.shape[0]):
        for j in range(x.shape[1]):
            y[at[i], j] = y[at[i], j] * 2 - x[i, j]
    return y


def across(x, at, like):
    y = output_tensor((x.shape[1], like.shape[0]), x.dtype)
    for i in range(at.shape[0]):
        for j in range(x.shape[1]):
            y[j, at[i]] += x[i, j]
    return y


def two_indices(x, at, like):
    y = output_tensor((like.shape[0], like.shape[0], x.shape[1]), x.dtype)
    for i in range(at.shape[0]):
        for j in range(x.shape[1]):
            y[at[i], at[at.shape[0] - 1 - i], j] += x[i, j]
    return y


def computed(x, at, like):
    y = output_tensor(like.shape, x.dtype)
    for i in range(at.shape[0]):
        for j in range(x.shape[1]):
            y[(at[i] * 3 + i) // 2 % like.shape[0] - like.shape[0], j] += x[i, j]
    return y


def beside(x, at, like):
    y = output_tensor(like.shape, x.dtype)
    z = output_tensor(x.shape, x.dtype)
    for i in range(at.shape[0]):
        for j in range(x.shape[1]):
            z[i, j] = x[i, j] * 2
            if like.shape[0] > 0:
                y[at[i], j] += x[i, j]
    return y, z


def previous_index(x, at, like):
    y = output_tensor(like.shape, x.dtype)
    for i in range(at.shape[0]):
        for j in range(x.shape[1]):
            if i > 0:
                y[at[i - 1], j] += x[i, j]
    return y


def index_of_index(x, at, like):
    y = output_tensor(like.shape, x.dtype)
    for i in range(at.shape[0]):
        for j in range(x.shape[1]):
            if at[i] < at.shape[0]:
                y[at[at[i]], j] += x[i, j]
    return y


def never(x, at, like):
    y = output_tensor(like.shape, x.dtype)
    for i in range(at.shape[0]):
        for j in range(like.shape[1] - x.shape[1]):
            y[at[at[i] + 100], j] += x[i, j]
    return y


def twice(x, at, like):
    y = output_tensor(like.shape, x.dtype)
    for k in range(5):
        for i in range(k, at.shape[0]):
            for j in range(x.shape[1]):
                y[at[i - k], j] = y[at[i - k], j] * 2 - x[i, j] * k
    return y


def names(found0, row0_0, next0_0):
    q_2 = output_tensor(next0_0.shape, found0.dtype)
    q = output_tensor(found0.shape, found0.dtype)
    for q_1 in range(row0_0.shape[0]):
        for begin in range(found0.shape[1]):
            q_2[row0_0[q_1], begin] += found0[q_1, begin]
            q[q_1, begin] = found0[q_1, begin] + next0_0[row0_0[q_1], begin]
    return q_2, q


def other_rows_too(x, at, like):
    y = output_tensor(like.shape, x.dtype)
    for i in range(at.shape[0]):
        for j in range(1, x.shape[1]):
            y[at[i], j] = y[at[i], j] + y[at[i] // 2, j - 1] + x[i, j]
    return y


def moved_index(x, at, like):
    y = output_tensor(like.shape, x.dtype)
    w = output_tensor(at.shape, at.dtype)
    for i in range(at.shape[0]):
        for j in range(1, x.shape[1]):
            y[w[i], j] = y[w[i], j - 1] + x[i, j]
        w[at.shape[0] - 1 - i] = at[i]
    return y, w


def state(x, at, like):
    h = output_tensor((x.shape[1],), x.dtype)
    for t in range(x.shape[0]):
        for b in range(x.shape[1]):
            if x[t, b] > -2:
                h[b] = x[t, b] - h[b]
    return h


def three_loops(x, at, like):
    h = output_tensor((x.shape[1],), x.dtype)
    for k in range(2):
        for t in range(k, x.shape[0]):
            for b in range(1, x.shape[1]):
                h[b] = x[t, b - 1] * k - h[b]
    return h


def neighbour(x, at, like):
    h = output_tensor((x.shape[1],), x.dtype)
    for t in range(x.shape[0]):
        for b in range(1, x.shape[1]):
            h[b] = x[t, b] - h[b - 1]
    return h


def kept_scalar(x, at, like):
    h = output_tensor((x.shape[1],), x.dtype)
    y = output_tensor((1,), x.dtype)
    seen = 0.0
    for t in range(x.shape[0]):
        for b in range(x.shape[1]):
            h[b] = x[t, b] - h[b]
            if b == 1:
                seen = x[t, b] + 1
    y[0] = seen
    return h, y


ROWS = {
    **dict.fromkeys((added, greatest, last, last_positive, decayed, two_indices, computed), ("y", 0)),
    **dict.fromkeys((beside, previous_index, index_of_index, never, twice), ("y", 0)),
    across: ("y", 1),
    names: ("q_2", 0),
}
COLUMNS = {state: {"t": "b"}, three_loops: {"k": "b"}}
NEITHER = (other_rows_too, moved_index, neighbour, kept_scalar)
ALL = (*ROWS, *COLUMNS, *NEITHER)
NARROW = (added, greatest, last, last_positive)
CASES = [*((f, "float32") for f in ALL), *((f, d) for f in NARROW for d in ("float16", "int8", "float64"))]
SIZES = ((0, 3, 2), (5, 0, 3), (7, 5, 1), (9, 4, 3), (33, 600, 5), (6, 3, 0), (4, 6, 50))


@functools.cache
def typed(function, dtype="float32"):
    return parse(function, [(dtype, 2), ("int64", 1), (dtype, 2)], {})


@pytest.fixture(scope="session")
def compiled(batch):
    """Return a function from a kernel to its operator; threads are used for any size."""
    path = batch.build(batch.text([typed(*c) for c in CASES], isa.available()[0]), "-DPOLYOP_GRAIN=1")

    @functools.cache
    def of(function, dtype):
        tensors = [(dtype, ["n", "m"], ""), ("int64", ["n"], ""), (dtype, ["r", "m"], "")]
        return batch.bound(function, tensors, {}, path, CASES.index((function, dtype)))

    return of


def arrays(n, m, r, dtype):
    random = np.random.default_rng([n, m, r])
    x = random.integers(-3, 4, (n, m)).astype(dtype)
    return [x, random.integers(0, max(r, 1), n), np.ones((r, m), dtype)]


@pytest.mark.slow(9)
@pytest.mark.parametrize(("function", "dtype"), CASES)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_on_any_number_of_threads(function, dtype, size, compiled, batch):
    inputs = arrays(*size, dtype)
    try:
        expected = interpret(typed(function, dtype), inputs, {})
    except IndexError:
        expected = None  # there is no row
    for threads in (1, 2, 3, 7):
        with batch.threads(threads):
            if expected is None:
                with pytest.raises(KernelError, match="which has size 0"):
                    compiled(function, dtype)(*inputs)
                continue
            for one, other in zip(expected, compiled(function, dtype)(*inputs), strict=True):
                np.testing.assert_array_equal(other, one, strict=True)


@pytest.mark.slow(8)
@pytest.mark.parametrize("count", [SEARCHED - 1, SEARCHED, SEARCHED + 1, 2 * SEARCHED + 7])
@pytest.mark.parametrize("function", ROWS)
def test_more_iterations_than_a_thread_searches_at_once(function, count, compiled, batch):
    inputs = arrays(count, 5, 9, "float32")
    expected = interpret(typed(function), inputs, {})
    for threads in (1, 3):
        with batch.threads(threads):
            for one, other in zip(expected, compiled(function, "float32")(*inputs), strict=True):
                np.testing.assert_array_equal(other, one)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("function", [added, greatest, last, last_positive, decayed, beside])
@pytest.mark.parametrize("index", [9, -10, 2**40])
def test_a_row_outside_is_an_error(function, index, threads, compiled, batch):
    x, at, like = arrays(20, 30, 9, "float32")
    x[:] = 1
    at[13] = index
    words = f"index {index} is outside dimension 0 of y, which has size 9"
    with batch.threads(threads), pytest.raises(KernelError, match=words):
        compiled(function, "float32")(x, at, like)


def test_rows_may_count_from_the_end(compiled, batch):
    x, at, like = arrays(20, 30, 9, "float32")
    expected = interpret(typed(decayed), [x, at, like], {})[0]
    at[::2] -= 9
    for threads in (1, 3):
        with batch.threads(threads):
            np.testing.assert_array_equal(compiled(decayed, "float32")(x, at, like)[0], expected)


@pytest.mark.parametrize("function", ROWS)
def test_rows_are_shared(function):
    program = schedule(typed(function))
    buffer, axis = ROWS[function]
    ((var, row),) = program.plan.rows.items()
    assert (row.buffer, row.axis) == (buffer, axis)
    assert f"loop {var}: on all threads, each for its own part of {buffer}, in order" in note_texts(program)
    assert not program.plan.columns


@pytest.mark.parametrize("function", COLUMNS)
def test_columns_are_shared(function):
    program = schedule(typed(function))
    assert program.plan.columns == COLUMNS[function]
    assert not program.plan.rows
    ((var, inner),) = program.plan.columns.items()
    assert f"loop {var}: in order on all threads, each with its own part of loop {inner}" in note_texts(
        program
    )


@pytest.mark.parametrize("function", NEITHER)
def test_which_loops_are_not_shared(function):
    program = schedule(typed(function))
    assert not program.plan.rows
    assert not program.plan.columns
    assert not any("each" in text and "own part" in text for text in note_texts(program))


@pytest.mark.parametrize("function", [added, last])
def test_a_row_is_checked_once(function):
    program = schedule(typed(function))
    assert "y: dimension 0 is checked once for each row" in note_texts(program)
    source = source_of(program, isa.available()[0], "f")
    line = next(text for text in source.splitlines() if "if (found" in text)
    assert "store_" in line
    assert "polyop_inside" not in line


def test_a_column_that_an_index_picks_is_checked_at_each_access():
    assert "y: dimension 1 is checked at each access" in note_texts(schedule(typed(across)))


def note_texts(program):
    return [note.text for note in notes_of(program, isa.available()[0])]
