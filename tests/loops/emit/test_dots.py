# ruff: noqa: F821 - kernels, whose words are no names here
"""Sums of products of narrow numbers have the values of the plain loop, with and without instructions for them."""

import functools

import ml_dtypes
import numpy as np
import pytest

import instruction_sets
import polyop
from loop_samples import batch, generate
from polyop.loops.emit.printer import source as source_of
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.schedule import Schedule
from polyop.loops.pipeline import schedule
from polyop.loops.targets.table import TARGETS

pytestmark = pytest.mark.filterwarnings("ignore::polyop.UninitialisedWarning")
BFLOAT = np.dtype(ml_dtypes.bfloat16)
SIZES = [(0, 1, 1), (1, 0, 3), (1, 1, 0), (1, 1, 1), (2, 3, 2), (3, 15, 4), (5, 16, 5), (6, 17, 7), (7, 33, 63),
         (13, 64, 65), (17, 100, 333), (4, 65, 256), (1, 130, 259)]  # fmt: skip
"""Rows, columns and terms."""


def in_memory(a, b):
    c = np.zeros((a.shape[0], b.shape[1]), np.int32)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                c[i, j] += int32(a[i, k]) * int32(b[k, j])
    return c


def by_rows(a, b):
    c = np.zeros((a.shape[0], b.shape[0]), np.int32)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            total = int32(0)
            for k in range(a.shape[1]):
                total += int32(a[i, k]) * int32(b[j, k])
            c[i, j] = total
    return c


def down_columns(a, b):
    c = np.zeros((a.shape[1], b.shape[1]), np.uint32)
    for i in range(a.shape[1]):
        for j in range(b.shape[1]):
            total = uint32(7)
            for k in range(a.shape[0]):
                total += uint32(b[k, j]) * uint32(a[k, i])
            c[i, j] = total
    return c


def zero_points(a, b, of_row, of_column):
    c = np.zeros((a.shape[0], b.shape[0]), np.float32)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            total = int32(i)
            for k in range(a.shape[1]):
                total += (int32(a[i, k]) - int32(of_row[i])) * (int32(b[j, k]) - int32(of_column[j]))
            c[i, j] = float32(total) * 0.5
    return c


def four_bits(a, b):
    """Two weights in a byte; the result is scaled in float64, so that lanes are wider than sums."""
    c = np.zeros((a.shape[0], b.shape[0]), np.float64)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            total = int32(0)
            for k in range(b.shape[1]):
                total += int32(a[i, 2 * k]) * (int32(b[j, k] & 15) - 8)
                total += int32(a[i, 2 * k + 1]) * (int32(b[j, k] >> 4) - 8)
            c[i, j] = total * 0.25
    return c


def inner_part(a, b):
    c = np.zeros((a.shape[0], b.shape[1]), np.int32)
    for i in range(a.shape[0]):
        for j in range(1, b.shape[1]):
            total = int32(b[0, j]) + 3
            for k in range(1, a.shape[1] - 1):
                total += int32(a[i, k]) * int32(b[k, j])
            c[i, j] = total
    return c


def brain(a, b):
    c = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            total = float32(0)
            for k in range(a.shape[1]):
                total += float32(a[i, k]) * float32(b[k, j])
            c[i, j] = total
    return c


def brain_by_rows(a, b):
    c = np.zeros((a.shape[0], b.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            total = float32(0)
            for k in range(a.shape[1]):
                total += float32(a[i, k]) * float32(b[j, k])
            c[i, j] = total
    return c


def shapes(function, m, n, k):
    """Return the shapes of a kernel's tensors."""
    return {
        in_memory: [(m, k), (k, n)],
        by_rows: [(m, k), (n, k)],
        down_columns: [(k, m), (k, n)],
        zero_points: [(m, k), (n, k), (m,), (n,)],
        four_bits: [(m, 2 * k), (n, k)],
        inner_part: [(m, k + 2), (k + 2, n)],
        brain: [(m, k), (k, n)],
        brain_by_rows: [(m, k), (n, k)],
    }[function]


def inner(a, b):
    result = a[:, 1:-1] @ b[1:-1] + b[:1] + 3
    result[:, :1] = 0
    return result


def moved(a, b, of_row, of_column):
    product = (a - of_row[:, None]) @ (b - of_column[:, None]).T
    return (product + np.arange(len(a))[:, None]).astype(np.float32) * np.float32(0.5)


EXPECTED = {
    in_memory: lambda a, b: a @ b,
    by_rows: lambda a, b: a @ b.T,
    down_columns: lambda a, b: a.T @ b + 7,
    zero_points: moved,
    four_bits: lambda a, b: (a[:, ::2] @ ((b & 15) - 8).T + a[:, 1::2] @ ((b >> 4) - 8).T) * 0.25,
    inner_part: inner,
    brain: lambda a, b: a @ b,
    brain_by_rows: lambda a, b: a @ b.T,
}


def expected(function, *inputs):
    """Return the values of a kernel by NumPy's product, in 64 bits; sums of integers wrap around."""
    wide = np.float64 if function in (brain, brain_by_rows) else np.int64
    right = EXPECTED[function](*(x.astype(wide) for x in inputs))
    return (
        right.astype(np.uint32 if function is down_columns else np.int32)
        if right.dtype == np.int64
        else right
    )


CASES = [
    *((f, (x, y), kind) for f in (in_memory, by_rows) for x, y, kind in (
        ("int8", "int8", "i8"), ("uint8", "int8", "u8"), ("int8", "uint8", "i8"), ("uint8", "uint8", "u8"),
        ("int16", "int16", "i16"), ("int8", "int16", "i16"), ("bool", "int8", "u8"))),
    (down_columns, ("uint8", "uint8"), "u8"),
    (down_columns, ("int8", "uint8"), ""),  # a negative number as a uint32 fits into no byte
    (zero_points, ("int8", "uint8", "int8", "uint8"), "i16"),
    (four_bits, ("int8", "uint8"), "i8"),
    (four_bits, ("uint8", "uint8"), "u8"),
    (inner_part, ("uint8", "int8"), "u8"),
    (in_memory, ("uint16", "int8"), ""),
    (brain, ("bfloat16", "bfloat16"), "bf16"),
    (brain_by_rows, ("bfloat16", "bfloat16"), "bf16"),
    (brain, ("bfloat16", "float32"), ""),
]  # fmt: skip
"""Kernels, the dtypes of their tensors, and the kind of dot that they have, or none."""


@functools.cache
def program(number):
    function, dtypes, _ = CASES[number]
    ranks = [len(shape) for shape in shapes(function, 1, 1, 1)]
    return schedule(parse(function, list(zip(dtypes, ranks, strict=True)), {}))


def kind_of(number):
    return "".join({dot.kind for tile in program(number).plan.tiles.values() for dot in tile.dots})


@pytest.mark.parametrize("number", range(len(CASES)))
def test_sums_of_narrow_products_are_dots(number):
    assert kind_of(number) == CASES[number][2]


def test_a_float_sum_of_integer_products_is_none():
    def of_floats(a, b):
        c = np.zeros((a.shape[0], b.shape[1]), np.float32)
        for i in range(a.shape[0]):
            for j in range(b.shape[1]):
                total = float32(0)
                for k in range(a.shape[1]):
                    total += float32(int32(a[i, k]) * int32(b[k, j]))
                c[i, j] = total
        return c

    tiles = schedule(parse(of_floats, [("int8", 2), ("int8", 2)], {})).plan.tiles
    assert [tile.dots for tile in tiles.values()] == [()]


def values(dtype, shape, draw):
    if dtype == "bfloat16":
        return draw.standard_normal(shape).astype(BFLOAT)
    if dtype.startswith("float"):
        return draw.standard_normal(shape).astype(dtype)
    if dtype == "bool":
        return draw.integers(0, 2, shape).astype(bool)
    info = np.iinfo(dtype)
    found = draw.integers(info.min, info.max + 1, shape).astype(dtype)
    return np.where(draw.random(shape) < 0.3, draw.choice([info.min, info.max], shape), found).astype(dtype)


WITH, WITHOUT = "-DPOLYOP_GRAIN=1", "-DPOLYOP_DOT_FEATURES=0"
OTHERS = [(name, WITH) for name in instruction_sets.OTHERS]
OTHERS += [(name, WITHOUT) for name in ("avx512", "avx2") if name in instruction_sets.isa.available()]
VERSIONS = [(instruction_sets.BEST, WITH), *(pytest.param(*one, marks=pytest.mark.slow) for one in OTHERS)]


@functools.cache
def library(isa, flag):
    return batch.build(batch.text([program(n) for n in range(len(CASES))], isa), WITH, flag)


@pytest.mark.parametrize(("isa", "flag"), VERSIONS)
def test_they_have_the_values_of_the_plain_loop(isa, flag):
    draw = np.random.default_rng(0)
    path = library(isa, flag)
    for number, (function, dtypes, _) in enumerate(CASES):
        for sizes in SIZES:
            pairs = zip(dtypes, shapes(function, *sizes), strict=True)
            inputs = [values(dtype, shape, draw) for dtype, shape in pairs]
            right = expected(function, *inputs)
            out = program(number).kernel.buffers[program(number).kernel.outputs[0]].dtype
            found = np.zeros(right.shape, BFLOAT if out == "bfloat16" else out)
            batch.call(path, number, inputs, [found])
            if right.dtype.kind == "f" and function in (brain, brain_by_rows):
                near(found, right, inputs)
            else:
                np.testing.assert_array_equal(found, right, f"{function.__name__} {dtypes} {sizes}")


def near(found, right, inputs):
    """Compare sums of floats with the error that a sum in float32 may have, and one more rounding."""
    sums = [abs(x.astype(np.float64)) for x in inputs]
    most = sums[0] @ (
        sums[1] if sums[0].shape[1:] == sums[1].shape[:1] and found.dtype != BFLOAT else sums[1].T
    )
    rounding = 2.0**-8 if found.dtype == BFLOAT else 2.0**-24
    terms = inputs[0].shape[1]
    assert (
        abs(found.astype(np.float64) - right) <= (terms + 2) * 2.0**-24 * most + rounding * abs(right)
    ).all()


@pytest.mark.parametrize("isa", instruction_sets.EACH)
def test_sums_wrap_around_and_infinities_stay_in_their_columns(isa):
    path = library(isa, WITH)
    terms = 2**17 + 3  # products of 2**14
    a, b = np.full((2, terms), -128, np.int8), np.full((terms, 1), -128, np.int8)
    found = np.zeros((2, 1), np.int32)
    batch.call(path, 0, [a, b], [found])
    np.testing.assert_array_equal(found, expected(in_memory, a, b))
    for number in range(len(CASES)):
        function, _, kind = CASES[number]
        if kind == "bf16":
            for terms in (1, 2, 5):  # behind an odd number of terms there is a padded one
                a, b = (np.ones(shape, BFLOAT) for shape in shapes(function, 7, 5, terms))
                where = (-1, 2) if function is brain else (2, -1)
                b[where] = np.inf
                right = expected(function, a, b)
                found = np.zeros(right.shape, np.float32 if function is brain else BFLOAT)
                batch.call(path, number, [a, b], [found])
                np.testing.assert_array_equal(found.astype(np.float64), right)


def test_a_row_has_the_bits_that_it_has_alone():
    """No instruction is chosen by the processor where it rounds otherwise; sums of integers are exact."""
    kernel = parse(brain, [("bfloat16", 2)] * 2, {})
    steps = Schedule().deterministic()
    assert not any(tile.dots for tile in schedule(kernel, steps=steps).plan.tiles.values())
    kernel = parse(in_memory, [("int8", 2)] * 2, {})
    assert any(tile.dots for tile in schedule(kernel, steps=steps).plan.tiles.values())


RANDOM = 12


@pytest.mark.parametrize("number", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 4))])
def test_random_products(number):
    """Their factors, layouts, sums and results are random; the interpreter says what is right."""
    made = [generate.narrow_product(f"{number} {k}") for k in range(RANDOM)]
    kernels = [
        parse(generate.function_of(text), list(zip(types, (2, 2, 1, 1), strict=True)), {})
        for text, types, *_ in made
    ]
    programs = [schedule(kernel) for kernel in kernels]
    assert sum(any(tile.dots for tile in one.plan.tiles.values()) for one in programs) > RANDOM // 4
    isa = instruction_sets.isa.available()[number % len(instruction_sets.isa.available())]
    path = batch.build(batch.text(programs, isa), WITH)
    draw = np.random.default_rng(number)
    for k, (text, types, rows, columns) in enumerate(made):
        for m, n, terms in ((3, 66, 9), (1, 3, 2), (13, 17, 35)):
            shapes_of = [
                (m, terms) if rows else (terms, m),
                (n, terms) if columns else (terms, n),
                (m,),
                (n,),
            ]
            inputs = [values(dtype, shape, draw) for dtype, shape in zip(types, shapes_of, strict=True)]
            (right,) = interpret(kernels[k], inputs)
            found = np.zeros_like(right)
            batch.call(path, k, inputs, [found])
            np.testing.assert_array_equal(found, right, f"{text}{types}")


def test_a_product_by_torch():
    torch = pytest.importorskip("torch", reason="not run: PyTorch is not installed")
    draw = np.random.default_rng(1)
    a, b = (torch.from_numpy(values("int8", shape, draw)) for shape in ((65, 300), (300, 67)))
    product = polyop.kernel(in_memory, name="dots::product")
    assert torch.equal(product(a, b), torch._int_mm(a, b))
    strided = a.t().contiguous().t()  # not contiguous
    assert torch.equal(product(strided, b), torch._int_mm(a, b))


@pytest.mark.parametrize("target", [name for name, row in TARGETS.items() if row.language == "c"])
def test_golden(target, golden):
    kernel = parse(by_rows, [("int8", 2), ("int8", 2)], {})
    text = source_of(schedule(kernel), target, "by_rows")
    if target == "avx512":
        golden("loops/targets/dot.avx512.c", text)
    assert "polyop_dot_i8_" in text
    assert batch.build(batch.text([schedule(kernel)], target))  # also for a processor of another family
