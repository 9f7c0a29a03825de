# ruff: noqa: F821 - kernels, whose words are no names here
"""Sums of tiles in blocks and over partial strips: the bits are those without; names of an author stay his."""

import functools

import numpy as np
import pytest

from polyop.loops.emit.printer import source as source_of
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.pipeline import PIPELINE, schedule
from polyop.loops.targets import isa


def product(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return c


def from_both_columns(a, b):
    c = output_tensor((a.shape[1], b.shape[1]), a.dtype)
    for i in range(a.shape[1]):
        for j in range(b.shape[1]):
            total = b[0, j] * 2
            for k in range(min(a.shape[0], b.shape[0])):
                total += a[k, i] * b[k, j]
            c[i, j] = total - a[0, i]
    return c


def greatest_sum(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            top = a[i, 0]
            for k in range(a.shape[1]):
                top = max(top, a[i, k] + b[k, j])
            c[i, j] = top
    return c


def two_sums(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            total = 0.0
            scale = 1.0
            for k in range(a.shape[1]):
                total += a[i, k] * b[k, j]
                scale *= b[k, j]
            c[i, j] = total / (1.0 + scale * scale)
    return c


def window(a, b):
    c = output_tensor((a.shape[0], b.shape[1] - 2), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1] - 2):
            total = 0.0
            for k in range(a.shape[1] // 3):
                for q in range(3):
                    total += a[i, 3 * k + q] * b[k, j + q]
            c[i, j] = total
    return c


def unused_sum(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                t = a[i, k] * b[k, j]  # noqa: F841 - nothing reads it
            c[i, j] = 1.0
    return c


def as_the_printer_calls_them(a, b, b0_: float, a0_: float, d0_: float):
    c = output_tensor((a.shape[1], b.shape[1]), a.dtype)
    for i in range(a.shape[1]):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(a.shape[0]):
                s += a[k, i] * b[k, j]
            c[i, j] = s * b0_ + a0_ - d0_
    return c


KERNELS = [
    product, from_both_columns, greatest_sum, two_sums, window, unused_sum, as_the_printer_calls_them,
]  # fmt: skip
DTYPES = ("float32", "float64", "float16")
CASES = [(kernel, dtype) for kernel in KERNELS for dtype in DTYPES]
SIZES = (
    (1, 1, 2),
    (7, 3, 5),
    (13, 40, 62),
    (6, 129, 48),
    (20, 16, 70),
    (3, 300, 33),
    (512, 9, 200),
    (8, 0, 5),
    (0, 4, 9),
)
"""Of rows, terms and lanes. Of 512 rows and 200 lanes few strips are packed: columns are 2 KiB apart."""
ATTRIBUTES = {"b0_": 2.5, "a0_": -1.25, "d0_": 0.75}
TURNED = (from_both_columns, as_the_printer_calls_them)


def attributes(kernel):
    return ATTRIBUTES if kernel is as_the_printer_calls_them else {}


@functools.cache
def typed(kernel, dtype):
    return parse(kernel, [(dtype, 2), (dtype, 2)], dict.fromkeys(attributes(kernel), float))


def built(batch, *flags):
    """Return a function from a case to its operator."""
    path = batch.build(batch.text([typed(*c) for c in CASES], isa.available()[0]), "-DPOLYOP_GRAIN=1", *flags)

    @functools.cache
    def of(kernel, dtype):
        rows = [(dtype, list("ik"), ""), (dtype, list("kj"), "")]
        return batch.bound(kernel, rows, attributes(kernel), path, CASES.index((kernel, dtype)))

    return of


@pytest.fixture(scope="session")
def in_blocks(batch):
    return built(batch, "-DPOLYOP_BLOCK=1")


@pytest.fixture(scope="session")
def in_one(batch):
    return built(batch, "-DPOLYOP_BLOCK=1e15")


@pytest.fixture(scope="session")
def without_memory(batch):
    """No memory for sums that wait."""
    return built(batch, "-DPOLYOP_BLOCK=1", "-DPOLYOP_WAITING=0")


def inputs(kernel, dtype, size):
    rows, terms, lanes = size
    random = np.random.default_rng(size)
    a, b = random.normal(size=(rows, terms)), random.normal(size=(terms, lanes))
    return [(a.T.copy() if kernel in TURNED else a).astype(dtype), b.astype(dtype)]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize(("kernel", "dtype"), CASES, ids=lambda one: getattr(one, "__name__", one))
def test_blocks_change_no_bit(kernel, dtype, size, in_blocks, in_one, without_memory, batch):
    arrays = inputs(kernel, dtype, size)
    try:
        expected = interpret(typed(kernel, dtype), [x.copy() for x in arrays], attributes(kernel))
    except IndexError:
        pytest.skip("the kernel reads a first term that there is not")
    for threads in (1, 3):
        with batch.threads(threads):
            results = [run(kernel, dtype)(*arrays)[0] for run in (in_blocks, in_one, without_memory)]
        for result in results[1:]:
            np.testing.assert_array_equal(result.view(np.uint8), results[0].view(np.uint8))
        rough = {"float16": 0.3, "float32": 1e-4, "float64": 1e-10}[dtype]  # sums of up to 300 rounded terms
        np.testing.assert_allclose(results[0], expected[0], rtol=rough, atol=rough)


@pytest.mark.parametrize("kernel", KERNELS)
def test_which_sums_run_in_blocks(kernel):
    """Each sum has to differ between rows and between lanes: one of ``two_sums`` is the same for all rows."""
    (tile,) = schedule(typed(kernel, "float32")).plan.tiles.values()
    assert tile.whole
    assert bool(tile.blocked) == (kernel not in (unused_sum, two_sums))


def test_a_tile_checks_once_for_an_interruption():
    """The check of a strip has paid for the sums in it, in blocks or not."""
    text = source_of(schedule(typed(from_both_columns, "float32")), "avx2", "f")
    inside = text[text.index("for (int64_t j = j_lo") :]
    assert inside.count("polyop_stops") == 1
    assert "polyop_next_check" not in inside


EACH = [one.name for one in PIPELINE if ".vectors." in one.run.__module__]


@pytest.mark.slow
@pytest.mark.parametrize("name", EACH)
def test_a_pass_left_out_alone(name, programs, batch, monkeypatch):
    """The printer prints what the plan says, whatever the plan lacks."""
    monkeypatch.setenv("POLYOP_SKIP_PASSES", name)
    some = programs.PROGRAMS[::12]
    kernels = [parse(p.function, [(d, len(axes)) for d, axes, _ in p.rows], p.attributes) for p in some]
    path = batch.build(batch.text(kernels, isa.available()[0]), "-DPOLYOP_GRAIN=1")
    for number, (program, kernel) in enumerate(zip(some, kernels, strict=True)):
        run = batch.bound(program.function, program.rows, program.attributes, path, number)
        sizes = max((s for s in program.sizes() if sum(s.values()) <= 80), key=lambda s: sum(s.values()))
        expected = interpret(kernel, program.arrays(sizes), program.attributes)
        for one, other in zip(expected, run(*program.arrays(sizes)), strict=True):
            np.testing.assert_allclose(
                other.astype(np.float64), one.astype(np.float64), program.rough, program.rough
            )
