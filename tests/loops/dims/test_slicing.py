"""Which dimensions can be cut into slices: what is proved, why not, and that it is true on numbers."""

# ruff: noqa: F821 - the words of the language

import math
import random

import numpy as np
import pytest

import polyop
from loop_samples import generate
from loop_samples.programs import PROGRAMS
from loop_samples.slices import Trial
from polyop.core.dims.dims import Dims
from polyop.core.errors import GradientError
from polyop.core.parse import parse as parse_schema
from polyop.loops.derive.adjoint import adjoint
from polyop.loops.derive.batch import batched
from polyop.loops.derive.functional import functional
from polyop.loops.derive.saving import saving
from polyop.loops.derive.tangent import tangent
from polyop.loops.dims.derive import derive_slicing, sizes_from_forward
from polyop.loops.dims.notation import claims, entries
from polyop.loops.dims.placed import placed_kernel
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.printing import shown
from polyop.loops.ir.types import is_real
from polyop.loops.pipeline import schedule

REAL = "float64"


def mean(x):
    y = output_tensor((1,), x.dtype)
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
    y[0] = total / x.shape[0]
    return y


def scaled_sum(x):
    y = output_tensor((1,), x.dtype)
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
    y[0] = 0.5 * -total
    return y


def square_of_sum(x):
    y = output_tensor((1,), x.dtype)
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
    y[0] = total * total
    return y


def count(x):
    y = output_tensor((1,), x.dtype)
    for i in range(x.shape[0]):  # noqa: B007
        y[0] += 1.0
    return y


def positions(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * i
    return y


def running_sum(x):
    y = output_tensor(x.shape, x.dtype)
    y[0] = x[0]
    for i in range(1, x.shape[0]):
        y[i] = y[i - 1] + x[i]
    return y


def last_positive(x):
    y = output_tensor(x.shape, x.dtype)
    last = 0.0
    for i in range(x.shape[0]):
        if x[i] > 0.0:
            last = x[i]
        y[i] = last
    return y


def product(x):
    y = output_tensor((1,), x.dtype)
    y[0] = 1.0
    for i in range(x.shape[0]):
        y[0] *= x[i]
    return y


def row_maxima(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        y[i] = -1.0
        for j in range(x.shape[1]):
            y[i] = max(y[i], x[i, j])
    return y


def flip(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[x.shape[0] - 1 - i]
    return y


def backwards(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[x.shape[0] - 1 - i] = 2.0 * x[x.shape[0] - 1 - i]
    return y


def bias(x, b):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        y[i] = b[i]
        for k in range(x.shape[1]):
            y[i] += x[i, k]
    return y


def differences(x):
    y = output_tensor(x.shape, x.dtype)
    y[0] = x[0]
    for i in range(1, x.shape[0]):
        y[i] = x[i] - x[i - 1]
    return y


def guarded(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = (x[i - 1] if i > 0 else 0.0) + (x[i + 1] if i + 1 < x.shape[0] else 0.0)
    return y


def every_second(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] if i % 2 == 0 else 0.0
    return y


def twice_smoothed(x):
    t = allocate(x.shape, x.dtype)
    y = output_tensor(x.shape, x.dtype)
    for i in range(1, x.shape[0] - 1):
        t[i] = x[i - 1] + x[i + 1]
    for i in range(1, x.shape[0] - 1):
        y[i] = t[i - 1] * t[i + 1]
    return y


def time_steps(x, steps):
    y = output_tensor(x.shape, x.dtype)
    t = allocate(x.shape, x.dtype)
    for i in range(x.shape[0]):
        t[i] = x[i]
    for _ in range(steps):
        for i in range(1, x.shape[0] - 1):
            y[i] = t[i - 1] + t[i + 1]
        for i in range(1, x.shape[0] - 1):
            t[i] = y[i]
    return y


def neighbours_summed(x):
    y = output_tensor((1,), x.dtype)
    for i in range(1, x.shape[0]):
        y[0] += x[i] * x[i - 1]
    return y


def square_matrix(x):
    y = output_tensor((x.shape[0], x.shape[0]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            y[i, j] = x[i] - x[j]
    return y


def triangle(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(i + 1):
            y[i] += x[i, j]
    return y


def half(x):
    y = output_tensor((x.shape[0] // 2,), x.dtype)
    for i in range(x.shape[0] // 2):
        y[i] = x[2 * i]
    return y


def looked_up(index, table):
    y = output_tensor((index.shape[0],), table.dtype)
    for k in range(index.shape[0]):
        y[k] = table[index[k]]
    return y


def padded(x, width):
    y = output_tensor((x.shape[0] - width,), x.dtype)
    for i in range(x.shape[0] - width):
        for k in range(width + 1):
            y[i] += x[i + k]
    return y


def ragged(x, lengths):
    y = output_tensor(x.shape, x.dtype)
    for b in range(x.shape[0]):
        for t in range(lengths[b]):
            y[b, t] = x[b, t]
    return y


def quadratic(x, k):
    y = output_tensor(x.shape, x.dtype)
    for i in range(k * k):
        y[i] = x[i]
    return y


def first_weight(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * w[0 if i == 0 else 1]
    return y


def first_shorter(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(1 if i == 0 else 2):
            y[i] += x[i] * (j + 1)
    return y


def first_or_switch(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if i == 0 or w[0] > 0.0:
            y[i] = x[i]
    return y


def others_unless_switch(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if i > 0 and w[0] > 0.0:
            y[i] = -x[i]
        else:
            y[i] = x[i]
    return y


def by_length(x, w):
    y = output_tensor(x.shape, x.dtype)
    s = w[0 if x.shape[0] > 5 else 1]
    for i in range(x.shape[0]):
        y[i] = x[i] * s
    return y


def negative_maximum(x):
    y = output_tensor((1,), x.dtype)
    m = -math.inf
    for i in range(x.shape[0]):
        m = max(m, x[i])
    m *= -1.0
    y[0] = m
    return y


def clamped_sum(x):
    y = output_tensor((1,), x.dtype)
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
    s = max(s, 0.0)
    y[0] = s
    return y


def weight_of_sum(index, w):
    y = output_tensor((1,), w.dtype)
    m = 0
    for i in range(index.shape[0]):
        m += index[i]
    y[0] = w[m]
    return y


def short_maximum(index):
    y = output_tensor((1,), uint8)
    m = 0
    for i in range(index.shape[0]):
        m = max(m, index[i])
    y[0] = uint8(m)
    return y


def beyond_the_end(x):
    y = output_tensor((1,), x.dtype)
    for i in range(x.shape[0] + 1):
        if i > 0:
            y[0] += x[i - 1]
    return y


def moved_maximum(x, w):
    y = output_tensor((1,), x.dtype)
    m = -math.inf
    for i in range(x.shape[0]):
        m = max(m, x[i])
    m += w[0]
    y[0] = m
    return y


CASES = [
    (mean, [1], {}, {"i": "placed sum: the size x.shape[0] is used as a value"}),
    (scaled_sum, [1], {}, {"i": "sum"}),
    (square_of_sum, [1], {}, {"i": "whole: total * total needs the whole sum total"}),
    (count, [1], {}, {"i": "sum"}),
    (positions, [1], {}, {"i": "placed parallel: the index i is used as a value"}),
    (running_sum, [1], {}, {"i": "whole: y[i - 1] needs all elements before it"}),
    (last_positive, [1], {}, {"i": "whole: last keeps a value from one i to the next"}),
    (product, [1], {}, {"i": "whole: y is a product"}),
    (row_maxima, [2], {}, {"i": "parallel", "j": "max"}),
    (flip, [1], {}, {"i": "whole: the loop i runs along it in both directions"}),
    (backwards, [1], {}, {"i": "parallel"}),
    (bias, [2, 1], {}, {"i": "parallel", "k": "whole: each slice would add b[i] to y"}),
    (differences, [1], {}, {"i": "halo 1 0"}),
    (guarded, [1], {}, {"i": "halo 1 1"}),
    (every_second, [1], {}, {"i": "placed parallel: whether x[i] is read depends on where the slice is"}),
    (twice_smoothed, [1], {}, {"i": "halo 2 2"}),
    (time_steps, [1], {"steps": 2}, {"i": "whole: t[i_1 - 1] needs all elements before it"}),
    (
        neighbours_summed,
        [1],
        {},
        {"i": "placed sum: neighbours of a slice are read, and would be added twice"},
    ),
    (square_matrix, [1], {}, {"i": "whole: two axes of y run along it"}),
    (
        triangle,
        [2],
        {},
        {
            "i": "placed parallel: which iterations run it depends on where the slice is",
            "j": "placed sum: which iterations run it depends on where the slice is",
        },
    ),
    (half, [1], {}, {"x_0": "whole: the size of y depends on it along another axis"}),
    (
        looked_up,
        [1, 1],
        {},
        {"k": "parallel", "table_0": "whole: the index of table[index[k]] depends on data"},
    ),
    (padded, [1], {"width": 2}, {"i": "halo 0 width"}),
    (
        ragged,
        [2, 1],
        {},
        {"b": "parallel", "t": "placed parallel: where the loop t begins or ends is not affine"},
    ),
    (quadratic, [1], {"k": 1}, {"i": "placed parallel: where the loop i begins or ends is not affine"}),
    (
        first_weight,
        [1, 1],
        {},
        {"i": "placed parallel: a condition in it", "w_0": "whole: the index of w["},
    ),
    (first_shorter, [1], {}, {"i": "placed parallel: a condition in it depends on where the slice is"}),
    (first_or_switch, [1, 1], {}, {"i": "placed parallel: a condition in it", "w_0": "whole: "}),
    (others_unless_switch, [1, 1], {}, {"i": "placed parallel: which iterations run it", "w_0": "whole: "}),
    (by_length, [1, 1], {}, {"i": "placed parallel: ", "w_0": "whole: "}),
    (negative_maximum, [1], {}, {"i": "whole: the whole max m of line"}),
    (moved_maximum, [1, 1], {}, {"i": "max", "w_0": "whole: every slice would need w[0]"}),
    (clamped_sum, [1], {}, {"i": "whole: the whole sum s of line"}),
    (weight_of_sum, [1, 1], {}, {"i": "whole: w[m] needs the whole sum m", "w_0": "whole: "}),
    (short_maximum, [1], {}, {"i": "whole: "}),
    (beyond_the_end, [1], {}, {"i": "whole: iterations beyond its ends count too"}),
]


def typed(function, ranks, attributes):
    names = function.__code__.co_varnames
    dtypes = ["int64" if names[k] in ("index", "lengths") else REAL for k in range(len(ranks))]
    return parse(function, list(zip(dtypes, ranks, strict=True)), attributes)


def words(row):
    if row.kind == "whole" or row.placed:
        return f"{'placed ' * row.placed}{row.kind}: {row.reason}"
    return (
        f"halo {' '.join(map(str, claims([row])['halo'][row.dimension.name]))}"
        if row.kind == "halo"
        else row.kind
    )


@pytest.mark.parametrize(
    ("function", "ranks", "attributes", "expected"), CASES, ids=lambda v: getattr(v, "__name__", None)
)
def test_what_is_proved(function, ranks, attributes, expected):
    rows = {row.dimension.name: row for row in derive_slicing(typed(function, ranks, attributes))}
    assert rows.keys() == expected.keys()
    for name, start in expected.items():
        assert words(rows[name]).startswith(start), words(rows[name])
        assert not rows[name].reason or rows[name].line, "a reason has a line"


@pytest.mark.parametrize(
    ("function", "ranks", "attributes", "expected"), CASES, ids=lambda v: getattr(v, "__name__", None)
)
def test_the_notation_is_that_of_dims(function, ranks, attributes, expected):
    kernel = typed(function, ranks, attributes)
    rows = derive_slicing(kernel)
    tensors = [f"Tensor {name}" for name in kernel.parameters if name in kernel.buffers]
    schema = parse_schema(f"ns::f({', '.join([*tensors, *(f'int {n}' for n in attributes)])}) -> Tensor")
    dims = Dims.parse(entries(kernel, rows), schema, **claims(rows))
    assert {*dims.whole} == {name for name, kind in expected.items() if kind.startswith(("whole", "placed"))}


SIZES = ((5, 4, 6, 3), (3, 5, 4, 6), (1, 2, 1, 3))


def try_on_numbers(kernel, attributes, known=None):
    """Assert what is proved of a kernel for several sizes; return how many claims could be tried."""
    rows, tried = derive_slicing(kernel, known), 0
    for seed, sizes in enumerate(SIZES):
        by_name = {row.dimension.name: sizes[k % 4] + k // 4 for k, row in enumerate(rows)}
        try:
            trial = Trial(kernel, rows, by_name, dict(attributes), np.random.default_rng(seed), known)
            trial.run(trial.inputs)
        except (IndexError, ValueError):  # the kernel takes no such sizes
            continue
        for row in rows:
            if row.kind != "whole" and trial.is_possible(row):
                tried += 1
                assert [*trial.mistakes(row)] == []
    return tried


def forms(kernel):
    """Yield a kernel and what is derived of it, each with the sizes that are known of it."""
    yield kernel, None
    if any(buffer.role == "inplace" for buffer in kernel.buffers.values()):
        return
    tensors = [name for name in kernel.parameters if name in kernel.buffers]
    makers = (
        lambda: adjoint(kernel, [True] * len(kernel.outputs)).kernel,
        lambda: saving(kernel, "auto"),
        lambda: tangent(kernel, [is_real(kernel, name) for name in tensors]),
        lambda: batched(kernel, [0] * len(tensors)),
    )
    for number, make in enumerate(makers):
        try:
            derived = make()
        except GradientError:
            continue
        if derived is not None:
            yield derived, None if number else sizes_from_forward(kernel, derived)


@pytest.mark.parametrize(
    ("function", "ranks", "attributes", "expected"), CASES, ids=lambda v: getattr(v, "__name__", None)
)
def test_it_is_true_on_numbers(function, ranks, attributes, expected):
    tried = sum(
        try_on_numbers(kernel, attributes, known)
        for kernel, known in forms(typed(function, ranks, attributes))
    )
    assert tried or all(kind.startswith("whole") for kind in expected.values())


def test_it_is_true_of_the_programs(program):
    kernel = parse(
        program.function, [(dtype, len(axes)) for dtype, axes, _ in program.rows], dict(program.attributes)
    )
    for form, known in forms(kernel):
        try_on_numbers(form, program.attributes, known)


def test_claims_of_the_programs_are_tried():
    program = next(p for p in PROGRAMS if p.name == "matmul-float32")
    kernel = parse(program.function, [(dtype, len(axes)) for dtype, axes, _ in program.rows], {})
    assert try_on_numbers(kernel, {}) == 9  # three dimensions, three sets of sizes


@pytest.mark.parametrize(
    ("seed", "count"), [(1, 60), *(pytest.param(k, 300, marks=pytest.mark.exhaustive) for k in range(2, 8))]
)
def test_it_is_true_of_random_kernels(seed, count):
    tried = 0
    for number in range(count):
        source = generate.Generator(random.Random(f"{seed} {number}"), real=True)
        tried += try_on_numbers(functional(parse(source.function(), source.types, {})), {})
    assert tried > count / 10


def test_a_placed_kernel_is_compiled_in_order_of_the_passes():
    kernel = typed(neighbours_summed, [1], {})
    placed, place = placed_kernel(kernel, derive_slicing(kernel)[0])
    assert (place.begin, place.end, place.start, place.size) == ("i_begin", "i_end", "i_start", "i_size")
    assert not schedule(placed).fallback
    assert "for i in range(max(1, i_begin), min(i_size, i_end)):" in shown(placed)
    assert "y[0] += x[i - i_start] * x[i - 1 - i_start]" in shown(placed)


def test_a_wrong_claim_is_found():
    """The trial itself: a cumulative sum that is said to be parallel."""
    kernel = typed(running_sum, [1], {})
    row = derive_slicing(kernel)[0]
    wrong = type(row)(row.dimension, "parallel")
    trial = Trial(kernel, [wrong], {"i": 4}, {}, np.random.default_rng(0))
    assert next(iter(trial.mistakes(wrong))) == "i is not parallel: y cut at (1,) of 4"


def test_explain_says_it():
    operator = polyop.operator("dims_test::running_sum(Tensor x) -> Tensor", polyop.kernel(running_sum))
    from polyop.call.explain import explain

    assert "slices      derived from the loops; give inputs" in explain(operator)
    text = explain(operator, (polyop.Spec((4,), "float32"),))
    assert "  slices      x[i] -> y[i]\n" in text
    assert "i is whole: y[i - 1] needs all elements before it, line" in text
    assert "  of gradient d_y[" in text
