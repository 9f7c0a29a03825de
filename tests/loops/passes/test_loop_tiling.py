# ruff: noqa: F821 - kernels, whose words are no names here
"""Nests that transpose are tiled by the compiler: which ones, and their values over sizes that no tile divides."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import instruction_sets
import polyop
from polyop.loops.emit.printer import source as source_of
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.passes.loop_tiling import COLUMNS
from polyop.loops.pipeline import schedule
from polyop.loops.schedule.chosen import chosen

S = polyop.Schedule()


def transposed(x):
    y = output_tensor((x.shape[1], x.shape[0]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j, i] = x[i, j]
    return y


def by_rows_of_the_result(x):
    y = output_tensor((x.shape[1], x.shape[0]), x.dtype)
    for j in range(x.shape[1]):
        for i in range(x.shape[0]):
            y[j, i] = x[i, j]
    return y


def turned_round(x):
    y = output_tensor((x.shape[1], x.shape[0]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j, i] = x[i, x.shape[1] - 1 - j]
    return y


def beside_itself(x, z):
    y = output_tensor((x.shape[1], x.shape[0]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            t = x[i, j] + z[j, i]
            y[j, i] = t * t if t > 0 else t
    return y


def symmetric(x):
    n = min(x.shape[0], x.shape[1])
    y = output_tensor((n, n), x.dtype)
    for i in range(n):
        for j in range(n):
            y[i, j] = x[i, j] - x[j, i]
    return y


def added(x, z):
    y = output_tensor(z.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j, i] = z[j, i]
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > 0:
                y[j, i] += x[i, j] * (i + 1)
    return y


def last_first(x):
    y = output_tensor((x.shape[0], x.shape[2], x.shape[1]), x.dtype)
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            for j in range(x.shape[2]):
                y[b, j, i] = x[b, i, j]
    return y


def channels_last(x):
    y = output_tensor((x.shape[0], x.shape[2], x.shape[3], x.shape[1]), x.dtype)
    for n in range(x.shape[0]):
        for c in range(x.shape[1]):
            for h in range(x.shape[2]):
                for w in range(x.shape[3]):
                    y[n, h, w, c] = x[n, c, h, w]
    return y


def channels_first(x):
    y = output_tensor((x.shape[0], x.shape[3], x.shape[1], x.shape[2]), x.dtype)
    for n in range(y.shape[0]):
        for c in range(y.shape[1]):
            for h in range(y.shape[2]):
                for w in range(y.shape[3]):
                    y[n, c, h, w] = x[n, h, w, c]
    return y


def turned_over(x):
    y = output_tensor((x.shape[2], x.shape[1], x.shape[0]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(x.shape[2]):
                y[k, j, i] = x[i, j, k]
    return y


def heads(x):
    """Permute 0213: rows stay rows."""
    y = output_tensor((x.shape[0], x.shape[2], x.shape[1], x.shape[3]), x.dtype)
    for b in range(x.shape[0]):
        for s in range(x.shape[1]):
            for h in range(x.shape[2]):
                for d in range(x.shape[3]):
                    y[b, h, s, d] = x[b, s, h, d]
    return y


def column_sums(x):
    y = output_tensor((x.shape[1],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j] += x[i, j]
    return y


def products(x):
    y = output_tensor((x.shape[0], x.shape[0]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            for k in range(x.shape[1]):
                y[j, i] += x[i, k] * x[j, k]
    return y


def weights(x):
    y = output_tensor((x.shape[0], x.shape[2], x.shape[1]), x.dtype)
    for o in range(x.shape[0]):
        for c in range(x.shape[2]):
            for q in range(x.shape[1]):
                for j in range(x.shape[0]):
                    y[o, c, q] += x[o, q, c] * x[j, q, c]
    return y


def triangle(x):
    n = min(x.shape[0], x.shape[1])
    y = output_tensor((n, n), x.dtype)
    for i in range(n):
        for j in range(i):
            y[j, i] = x[i, j]
    return y


def in_order(x):
    y = output_tensor((x.shape[1], x.shape[0]), x.dtype)
    for i in serial(x.shape[0]):
        for j in range(x.shape[1]):
            y[j, i] = x[i, j]
    return y


def in_place(x):
    n = min(x.shape[0], x.shape[1])
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j]
    for i in range(n):
        for j in range(n):
            y[j, i] = y[i, j] + 1
    return y


def both_ways(x):
    y = output_tensor((x.shape[1], x.shape[0]), x.dtype)
    z = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j, i] = x[i, j]
            z[i, j] = x[i, j] * 2
    return y, z


def order(*loops, tile="j"):
    """Return the steps that tile ``tile``; ``loops`` is the order then."""
    return S.tile(tile, COLUMNS).interchange(*loops)


TILED = {
    transposed: order("j.outer", "i", "j.inner"),
    by_rows_of_the_result: order("j.outer", "i", "j.inner"),
    turned_round: order("j.outer", "i", "j.inner"),
    beside_itself: order("j.outer", "i", "j.inner"),
    symmetric: order("i.outer", "j", "i.inner", tile="i"),
    last_first: order("b", "j.outer", "i", "j.inner"),
    channels_last: order("n", "h", "w.outer", "c", "w.inner", tile="w"),
    channels_first: order("n", "h", "c.outer", "w", "c.inner", tile="c"),
    turned_over: order("j", "k.outer", "i", "k.inner", tile="k"),
}
NOT = (heads, column_sums, products, weights, triangle, in_order, in_place, both_ways)
ALL = (*TILED, added, *NOT)
DIMENSIONS = {last_first: 3, turned_over: 3, channels_last: 4, channels_first: 4, heads: 4, weights: 3}
DTYPES = ("float32", "float64", "int32", "int8", "uint16", "float16", "bool")
CASES = [(f, "float32") for f in ALL] + [
    (f, d)
    for f in (transposed, symmetric, channels_last)
    for d in DTYPES
    if f is not symmetric or d != "bool"
]
CASES = list(dict.fromkeys(CASES))
SIDES = (1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 70)


@functools.cache
def typed(function, dtype="float32"):
    rows = [(dtype, DIMENSIONS.get(function, 2))] * function.__code__.co_argcount
    return parse(function, rows, {})


@functools.cache
def program(function):
    return schedule(typed(function))


@pytest.fixture(scope="session", params=instruction_sets.EACH)
def compiled(request, batch):
    """Return a function from a kernel to its operator."""
    path = batch.build(batch.text([typed(*c) for c in CASES], request.param), "-DPOLYOP_GRAIN=1")

    @functools.cache
    def of(function, dtype):
        rows = [(dtype, [*"nmkl"[: DIMENSIONS.get(function, 2)]], "")] * function.__code__.co_argcount
        return batch.bound(function, rows, {}, path, CASES.index((function, dtype)))

    return of


def numbers(shape, dtype, seed):
    values = np.random.default_rng(seed).integers(-9, 9, shape)
    return (values > 0) if dtype == "bool" else values.astype(dtype)


@pytest.mark.slow(3)
@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0].__name__}-{c[1]}")
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_values(case, compiled, batch, data):
    function, dtype = case
    count = DIMENSIONS.get(function, 2)
    long = st.sampled_from(SIDES)
    short = st.integers(1, 3)
    sides = [data.draw(long if k in (0, count - 1) or count == 2 else short) for k in range(count)]
    x = numbers(tuple(data.draw(st.permutations(sides))), dtype, 1)
    inputs = [x, numbers(x.shape[::-1], dtype, 2)][: function.__code__.co_argcount]
    expected = interpret(typed(*case), inputs, {})
    with batch.threads(data.draw(st.sampled_from((1, 3)))):
        results = compiled(*case)(*inputs)
    for one, other in zip(expected, results, strict=True):
        np.testing.assert_array_equal(other, one, err_msg=str(x.shape))


@pytest.mark.parametrize("function", TILED)
def test_which_nests_are_tiled(function):
    assert program(function).applied == TILED[function].steps


def test_a_nest_beside_another_is_tiled_alone():
    words = [step.word for step in program(added).applied]
    assert words == ["fuse", "fuse", "tile", "interchange"]


@pytest.mark.parametrize("function", NOT)
def test_which_nests_are_not_tiled(function):
    assert not {"tile"} & {step.word for step in program(function).applied}


@pytest.mark.parametrize("function", TILED)
@pytest.mark.parametrize("target", ["avx512", "avx2"])
def test_rows_are_transposed_in_registers(function, target):
    text = source_of(program(function), target, "f")
    assert "polyop_transpose_f32v4(" in text
    assert "scatter_" not in text
    assert "gather_" not in text


NARROW = {"int8": "i8v1", "bool": "u8v1", "int16": "i16v2", "float16": "u16v4", "float8_e5m2": "u8v4"}


@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_elements_are_transposed_in_registers_too(dtype):
    scheduled = schedule(typed(transposed, dtype))
    assert scheduled.applied == TILED[transposed].steps
    assert f"polyop_transpose_{NARROW[dtype]}(" in source_of(scheduled, "avx512", "f")


@pytest.mark.parametrize("function", ALL)
def test_the_schedule_that_was_chosen_gives_the_same_code(function):
    again = schedule(typed(function), steps=chosen(program(function)))
    assert source_of(again, "avx512", "f") == source_of(program(function), "avx512", "f")


@pytest.mark.parametrize("steps", [S.tile("i", 8), S.parallel("i"), S.vectorize("j")], ids=str)
def test_a_nest_that_the_author_names_is_left_alone(steps):
    scheduled = schedule(typed(transposed), steps=steps)
    assert [step for step in scheduled.applied if step not in steps.steps] == []


def test_a_short_loop_with_a_known_number_of_iterations():
    def few(x):
        y = output_tensor((24, x.shape[0]), x.dtype)
        for i in range(x.shape[0]):
            for j in range(24):
                y[j, i] = x[i, j]
        return y

    def order_alone(x):
        y = output_tensor((24, x.shape[0]), x.dtype)
        for j in range(24):
            for i in range(x.shape[0]):
                y[j, i] = x[i, j]
        return y

    assert schedule(parse(few, [("float32", 2)], {})).applied == ()
    assert schedule(parse(order_alone, [("float32", 2)], {})).applied == S.interchange("i", "j").steps


def test_explain_says_why():
    notes = [note for note in program(transposed).notes if note.kind == "loop_tiling"]
    reason = "as loads and stores are adjacent along different loops"
    assert [note.text for note in notes] == [f"{reason}: {step}" for step in TILED[transposed].steps]
    where = [program(transposed).kernel.source[note.line].strip() for note in notes]
    assert where == ["for j in range(x.shape[1]):"] * 2
