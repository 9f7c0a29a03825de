# ruff: noqa: F821 - kernels, whose words are no names here
"""Transposed copies of operands that contractions read across rows, and one-element temporaries."""

import functools
import inspect
import re

import numpy as np
import pytest

from polyop.core.errors import KernelError
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.printing import shown
from polyop.loops.ir.schedule import Schedule
from polyop.loops.passes.pack_transposed import BLOCK
from polyop.loops.pipeline import schedule
from polyop.loops.targets import isa


def weights(d, x):
    w = output_tensor(
        (d.shape[1], x.shape[1], x.shape[2] - d.shape[2] + 1, x.shape[3] - d.shape[3] + 1), x.dtype
    )
    for o in range(w.shape[0]):
        for c in range(w.shape[1]):
            for p in range(w.shape[2]):
                for q in range(w.shape[3]):
                    for n in range(d.shape[0]):
                        for i in range(d.shape[2]):
                            for j in range(d.shape[3]):
                                w[o, c, p, q] += d[n, o, i, j] * x[n, c, i + p, j + q]
    return w


def padded(d, x):
    w = output_tensor((d.shape[1], x.shape[1], 3), x.dtype)
    for o in range(w.shape[0]):
        for c in range(w.shape[1]):
            for p in range(w.shape[2]):
                for n in range(d.shape[0]):
                    for i in range(d.shape[2]):
                        w[o, c, p] += d[n, o, i, 0] * (
                            x[n, c, i + p - 1, 0] if i + p >= 1 and i + p - 1 < x.shape[2] else 0
                        )
    return w


def sometimes(d, x):
    w = output_tensor((d.shape[1], x.shape[1], x.shape[2] - d.shape[2] + 1), x.dtype)
    if x.shape[0] > 2:
        for o in range(w.shape[0]):
            for c in range(w.shape[1]):
                for p in range(w.shape[2]):
                    for n in range(d.shape[0]):
                        for i in range(d.shape[2]):
                            w[o, c, p] += d[n, o, i, 0] * x[n, c, i + p, 0]
    return w


def read_again(d, x):
    w = output_tensor((d.shape[1], x.shape[1], x.shape[2] - d.shape[2] + 1), x.dtype)
    z = output_tensor(x.shape, x.dtype)
    for o in range(w.shape[0]):
        for c in range(w.shape[1]):
            for p in range(w.shape[2]):
                for n in range(d.shape[0]):
                    for i in range(d.shape[2]):
                        w[o, c, p] += d[n, o, i, 0] * x[n, c, i + p, 0]
    for n in range(x.shape[0]):
        for c in range(x.shape[1]):
            for i in range(x.shape[2]):
                for j in range(x.shape[3]):
                    z[n, c, i, j] = x[n, c, i, j] * 2
    return w, z


def taken_name(x_transposed, x):
    w = output_tensor((x_transposed.shape[1], x.shape[1], x.shape[2] - x_transposed.shape[2] + 1), x.dtype)
    for o in range(w.shape[0]):
        for c in range(w.shape[1]):
            for p in range(w.shape[2]):
                for n in range(x_transposed.shape[0]):
                    for i in range(x_transposed.shape[2]):
                        w[o, c, p] += x_transposed[n, o, i, 0] * x[n, c, i + p, 0]
    return w


def picked(d, x, at):
    w = output_tensor((d.shape[1], x.shape[1], x.shape[2]), x.dtype)
    for o in range(w.shape[0]):
        for c in range(w.shape[1]):
            for p in range(w.shape[2]):
                for n in range(d.shape[0]):
                    for i in range(at.shape[0]):
                        w[o, c, p] += d[n, o, i, 0] * x[n, c, at[i] + p, 0]
    return w


def windows(d, x):
    y = output_tensor((d.shape[1], x.shape[2] - d.shape[2] + 1, x.shape[3]), x.dtype)
    for o in range(y.shape[0]):
        for i in range(y.shape[1]):
            for j in range(y.shape[2]):
                for c in range(d.shape[0]):
                    for p in range(d.shape[2]):
                        y[o, i, j] += d[c, o, p, 0] * x[c, 0, i + p, j]
    return y


def along_the_last(d, x):
    y = output_tensor((x.shape[0], d.shape[1], x.shape[3] - d.shape[3] + 1), x.dtype)
    for n in range(y.shape[0]):
        for o in range(y.shape[1]):
            for j in range(y.shape[2]):
                for c in range(x.shape[1]):
                    for q in range(d.shape[3]):
                        y[n, o, j] += x[n, c, 0, j + q] * d[0, o, 0, q]
    return y


def written(d, x):
    w = output_tensor((d.shape[1], x.shape[1], x.shape[2] - d.shape[2] + 1), x.dtype)
    t = allocate(x.shape, x.dtype)
    for n in range(x.shape[0]):
        for c in range(x.shape[1]):
            for i in range(x.shape[2]):
                t[n, c, i, 0] = x[n, c, x.shape[2] - 1 - i, 0]
    for o in range(w.shape[0]):
        for c in range(w.shape[1]):
            for p in range(w.shape[2]):
                for n in range(d.shape[0]):
                    for i in range(d.shape[2]):
                        w[o, c, p] += d[n, o, i, 0] * t[n, c, i + p, 0]
    return w


def either_may_be_short(d, x):
    w = output_tensor((d.shape[1], x.shape[1], d.shape[2]), x.dtype)
    for o in range(w.shape[0]):
        for c in range(w.shape[1]):
            for p in range(d.shape[2]):
                for n in range(d.shape[0]):
                    for j in range(d.shape[3]):
                        w[o, c, p] += d[n, o, 0, j] * x[n, c, 0, j + p]
    return w


def follows_the_sum(d, x):
    w = output_tensor((d.shape[1], x.shape[1], x.shape[2]), x.dtype)
    for n in range(d.shape[0]):
        for i in range(min(d.shape[2], x.shape[2])):
            for o in range(w.shape[0]):
                for c in range(w.shape[1]):
                    for p in range(min(i + 1, x.shape[2] - i)):
                        w[o, c, p] += d[n, o, i, 0] * x[n, c, i + p, 0]
    return w


def starts_with_the_target(d, x):
    y = output_tensor((d.shape[1] + 1, x.shape[1], 3), x.dtype)
    for c in range(x.shape[1]):
        for o in range(d.shape[1]):
            for p in range(min(3, x.shape[2])):
                total = y[o + 1, c, max(p - 1, 0)]
                for n in range(min(d.shape[0], x.shape[0])):
                    for i in range(min(d.shape[2], x.shape[2] - p)):
                        total += d[n, o, i, 0] * x[n, c, i + p, 0]
                y[o, c, p] += total
    return y


def two_in_a_loop(d, x):
    w = output_tensor((d.shape[1], x.shape[1], x.shape[2] - d.shape[2] + 1), x.dtype)
    v = output_tensor((d.shape[1], x.shape[1], x.shape[2] - d.shape[2] + 1), x.dtype)
    for o in range(w.shape[0]):
        for c in range(w.shape[1]):
            for p in range(w.shape[2]):
                for n in range(d.shape[0]):
                    for i in range(d.shape[2]):
                        w[o, c, p] += d[n, o, i, 0] * x[n, c, i + p, 0]
        for c in range(w.shape[1]):
            for p in range(w.shape[2]):
                for n in range(d.shape[0]):
                    for i in range(d.shape[2]):
                        v[o, c, p] += d[n, o, i, 0] * x[n, c, i + p, 0] * 2
    return w, v


def sums(d, x):
    y = output_tensor(d.shape, x.dtype)
    s = allocate((d.shape[0], d.shape[1]), x.dtype)
    for n in range(d.shape[0]):
        for o in range(d.shape[1]):
            for i in range(d.shape[2]):
                s[n, o] += d[n, o, i, 0]
            for i in range(d.shape[2]):
                for j in range(d.shape[3]):
                    y[n, o, i, j] = d[n, o, i, j] + s[n, o]
    return y


def once_positive(d, x):
    y = output_tensor((d.shape[0],), x.dtype)
    s = allocate((d.shape[0],), x.dtype)
    for n in range(d.shape[0]):
        if d.shape[1] > 3:
            s[n] = 2
        y[n] = s[n] + d.shape[1]
    return y


def of_all_iterations(d, x):
    y = output_tensor((d.shape[0], d.shape[1]), x.dtype)
    s = allocate((d.shape[1],), x.dtype)
    for n in range(d.shape[0]):
        for o in range(d.shape[1]):
            s[o] += d[n, o, 0, 0]
            y[n, o] = s[o]
    return y


TRANSPOSED = {
    padded: "d",
    sometimes: "d",
    read_again: "d",
    taken_name: "x_transposed",
    picked: "d",
    written: "d",
}
BY_SIZES = {either_may_be_short: "d.shape[2] < 32 and d.shape[2] <= d.shape[1]"}
KEPT = (windows, weights, along_the_last)
ONE_ELEMENT, MORE = (sums, once_positive), (of_all_iterations,)
ALL = (
    follows_the_sum,
    starts_with_the_target,
    two_in_a_loop,
    *TRANSPOSED,
    *BY_SIZES,
    *KEPT,
    *ONE_ELEMENT,
    *MORE,
)
CASES = [*((f, "float32") for f in ALL), *((f, d) for f in (weights, sums) for d in ("float16", "int32"))]
SIZES = ((2, 3, 5, 2, 2, 4, 3), (2, 3, 17, 2, 1, 4, 2), (1, 1, 1, 1, 1, 1, 1), (0, 2, 3, 2, 2, 4, 4))
LONG = ((1, 70, 1), (2, 70, BLOCK), (1, 3, 2 * BLOCK + 5), (3, 1, 2 * BLOCK + 1))
SIZES += ((2, 0, 3, 2, 2, 4, 4), (2, 3, 1, 2, 2, 4, 4))


@functools.cache
def typed(function, dtype="float32"):
    tensors = [(dtype, 4), (dtype, 4), ("int64", 1)]
    return parse(function, tensors[: function.__code__.co_argcount], {})


@pytest.fixture(scope="session")
def compiled(batch):
    """Return a function from a kernel to its operator; threads are used for any size."""
    path = batch.build(batch.text([typed(*c) for c in CASES], isa.available()[0]), "-DPOLYOP_GRAIN=1")

    @functools.cache
    def of(function, dtype):
        tensors = [(dtype, list("noij"), ""), (dtype, list("mchw"), ""), ("int64", ["i"], "")]
        rows = tensors[: function.__code__.co_argcount]
        return batch.bound(function, rows, {}, path, CASES.index((function, dtype)))

    return of


@pytest.mark.slow
@pytest.mark.parametrize(("function", "dtype"), CASES)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_results_are_those_of_the_loops(function, dtype, size, compiled, batch):
    n, o, c, i, j, h, w = size
    random = np.random.default_rng(size)
    d, x = (random.integers(-2, 3, s).astype(dtype) for s in ((n, o, i, j), (n, c, h, w)))
    if function is windows:
        d, x = np.ones((n, o, i, j), dtype), random.integers(-2, 3, (n, 1, h, w)).astype(dtype)
    inputs = [d, x, -h * (np.arange(i) % 2)][: function.__code__.co_argcount]
    expected = interpret(typed(function, dtype), inputs, {})
    for threads in (1, 3):
        with batch.threads(threads):
            for one, other in zip(expected, compiled(function, dtype)(*inputs), strict=True):
                np.testing.assert_array_equal(other, one, strict=True)


@pytest.mark.slow
@pytest.mark.parametrize("size", LONG, ids=str)
@pytest.mark.parametrize("function", [padded, read_again])
def test_threads_share_the_lanes_and_the_blocks_of_rows(function, size, compiled, batch):
    """The products are small whole numbers: their sum has the same bits in any order."""
    n, o, i = size
    random = np.random.default_rng(size)
    d, around = (random.integers(-2, 3, (n, *rows)).astype("float32") for rows in ((o, i, 1), (5, i + 2)))
    if function is padded:
        around[..., 0] = around[..., -1] = 0
    x = (around[..., 1:-1] if function is padded else around)[..., None]
    expected = np.stack([np.einsum("noi,nci->oc", d[..., 0], around[:, :, p : p + i]) for p in range(3)], 2)
    for threads in (1, 3):
        with batch.threads(threads):
            np.testing.assert_array_equal(compiled(function, "float32")(d, x)[0], expected)


@pytest.mark.parametrize(("dtype", "has_blocks"), [("float32", True), ("float64", True), ("int32", False)])
def test_only_a_float_sum_has_blocks(dtype, has_blocks):
    program = schedule(typed(read_again, dtype))
    assert (f"ceil_div(d.shape[2], {BLOCK})" in shown(program.kernel)) == has_blocks
    assert (("i_outer",) in program.plan.collapsed.values()) == has_blocks
    assert "o" in program.plan.blocks.values()  # where there are few blocks, threads share the lanes


@pytest.mark.parametrize("function", [*TRANSPOSED, *BY_SIZES])
def test_which_operands_are_transposed(function):
    program = schedule(typed(function))
    operand = TRANSPOSED.get(function, "d")
    assert f"{operand}: read from a copy with dimension 1 last" in [note.text for note in program.notes]
    copy = next(b for b in program.kernel.buffers.values() if b.for_lanes)
    assert copy.name.startswith(f"{operand}_transposed")
    assert [size.axis for size in copy.shape] == [0, 2, 3, 1]
    assert BY_SIZES.get(function, "") in shown(program.kernel)
    tile = next(tile for tile in program.plan.tiles.values() if copy.name in {e.buffer for e in tile.shared})
    assert not tile.to_pack  # its elements are side by side already


@pytest.mark.parametrize("function", KEPT)
def test_which_operands_are_not_transposed(function):
    program = schedule(typed(function))
    assert not [note for note in program.notes if note.kind == "pack_transposed"]


@pytest.mark.parametrize("loop", ["for i in range(d.shape[2])", "for c in range(w.shape[1])"])
def test_the_order_that_an_author_asks_for_stays(loop, generate):
    text = (
        inspect.getsource(read_again)
        .replace("read_again", "f")
        .replace(loop, loop.replace("range", "serial"), 1)
    )
    program = schedule(parse(generate.function_of(text), [("float32", 4)] * 2, {}))
    assert not [note for note in program.notes if note.kind == "pack_transposed"]
    program = schedule(typed(read_again, "float32"), steps=Schedule().interchange("c", "o"))
    assert not [note for note in program.notes if note.kind == "pack_transposed"]


def test_a_factor_without_dimensions_has_no_last_dimension():
    def row_sums(x, scale):
        y = output_tensor((x.shape[0],), x.dtype)
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                y[i] += x[i, j] * scale[()]
        return y

    x, scale = np.arange(12.0).reshape(3, 4), np.array(2.0)
    scheduled = schedule(parse(row_sums, [("float64", 2), ("float64", 0)], {}))
    np.testing.assert_array_equal(interpret(scheduled.kernel, [x, scale], {})[0], 2 * x.sum(1))


@pytest.mark.slow
@pytest.mark.parametrize("outside", [9, -9])
def test_an_index_outside_is_of_the_tensor_itself(outside, compiled):
    d, x = np.ones((2, 3, 4, 1), "float32"), np.ones((2, 5, 6, 2), "float32")
    with pytest.raises(KernelError) as raised:
        compiled(picked, "float32")(d, x, np.array([0, 0, outside, 0]))
    words = r"index (-?\d+) is outside dimension 2 of x, which has size 6"
    match = re.search(words, str(raised.value))
    # threads have a p each, and the first that meets its own speaks
    assert match is not None and int(match[1]) - outside in range(6), str(raised.value)


@pytest.mark.slow
def test_sizes_that_do_not_fit_are_of_the_tensor_itself(compiled):
    d, x = np.ones((2, 3, 2, 2), "float32"), np.ones((1, 5, 4, 4), "float32")
    with pytest.raises(KernelError, match="an index leaves dimension 0 of x, which has size 1"):
        compiled(weights, "float32")(d, x)


@pytest.mark.parametrize("function", ONE_ELEMENT)
def test_a_temporary_of_one_element_is_a_scalar(function):
    assert "s" not in schedule(typed(function)).kernel.buffers


@pytest.mark.parametrize(("function", "dtype"), [*((f, "float32") for f in MORE), (sums, "float16")])
def test_a_temporary_that_stays_in_memory(function, dtype):
    assert "s" in schedule(typed(function, dtype)).kernel.buffers  # a half type is rounded there at each step
