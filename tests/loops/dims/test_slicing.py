"""Which dimensions can be cut into slices: what is proved, why not, and that it is true on numbers."""

import random

import numpy as np
import pytest

import polyop
from loop_samples import generate
from loop_samples.programs import PROGRAMS
from loop_samples.sliced import CASES, differences, neighbours_summed, running_sum
from loop_samples.slices import Trial
from polyop.core.dims.dims import Dims
from polyop.core.errors import GradientError
from polyop.core.parse import parse as parse_schema
from polyop.loops.derive.forms import adjoint, batched, saving, tangent
from polyop.loops.derive.functional import functional
from polyop.loops.dims.derive import derive_slicing, sizes_from_forward
from polyop.loops.dims.notation import claims, entries
from polyop.loops.dims.placed import placed_kernel
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.printing import shown
from polyop.loops.ir.types import is_real
from polyop.loops.pipeline import schedule

REAL = "float64"


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


@pytest.mark.slow(8)
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


@pytest.mark.slow(4)
@pytest.mark.parametrize(
    ("function", "ranks", "attributes", "expected"), CASES, ids=lambda v: getattr(v, "__name__", None)
)
def test_it_is_true_on_numbers(function, ranks, attributes, expected):
    tried = sum(
        try_on_numbers(kernel, attributes, known)
        for kernel, known in forms(typed(function, ranks, attributes))
    )
    assert tried or all(kind.startswith("whole") for kind in expected.values())


@pytest.mark.slow(3)
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
    ("seed", "count"),
    [(1, 25), *(pytest.param(k, 300, marks=pytest.mark.slow) for k in range(2, 8))],
)
def test_it_is_true_of_random_kernels(seed, count):
    tried = 0
    for number in range(count):
        source = generate.Generator(random.Random(f"{seed} {number}"), real=True)
        tried += try_on_numbers(functional(parse(source.function(), source.types, {})), {})
    assert tried > count / 10


def test_a_gradient_may_look_one_element_further_than_it_reads():
    """Of ``d_x[i] = d_y[i] - d_y[i + 1]`` the conditions at the borders look back by one, too."""
    forward = typed(differences, [1], {})
    gradient = adjoint(forward, [True]).kernel
    (row,) = derive_slicing(gradient, sizes_from_forward(forward, gradient))
    assert words(row) == "halo 1 1"


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
    assert "dimensions  x has 1 dimension, by uses in the loops" in explain(operator)
    text = explain(operator, (polyop.Spec((4,), "float32"),))
    assert "  slices      x[i] -> y[i]\n" in text
    assert "i cannot be split: y[i - 1] needs all elements before it, line" in text
    assert "  of gradient d_y[" in text
