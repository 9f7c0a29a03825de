"""Slices that know their place: the part ``<name>__placed``, on numbers."""

# ruff: noqa: F821 - the words of the language

import numpy as np
import pytest

import numpy_mesh
import polyop
from loop_samples.sliced import (
    all_but_two,
    all_but_two_positions,
    mean,
    neighbours_summed,
    positions,
    short_temporary,
    triangle,
)
from polyop.call import registry
from polyop.call.explain import explain
from polyop.core.errors import ArgumentValueError, KernelError
from polyop.loops.derive.forms import adjoint
from polyop.loops.dims.derive import derive_slicing, sizes_from_forward
from polyop.loops.dims.placed import placed_kernel
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.pipeline import schedule

pytestmark = pytest.mark.filterwarnings("ignore::polyop.UninitialisedWarning")
DEVICES = (1, 2, 3, 4, 7, 9)
"""Even, uneven and empty slices of the sizes below."""


def column_means(x):
    y = output_tensor((x.shape[1],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j] += x[i, j] / x.shape[0]
    return y


def window(x, w):
    y = output_tensor((x.shape[0] - w.shape[0] + 1, x.shape[1] - w.shape[1] + 1), x.dtype)
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            for a in range(w.shape[0]):
                for b in range(w.shape[1]):
                    y[i, j] += x[i + a, j + b] * w[a, b]
    return y


def scaled_positions(x, scale=2.0, first=0):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i] * (i + first) * scale
    return y


def spread(x):
    y = output_tensor(x.shape, x.dtype)
    total = output_tensor((1,), x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * i
        total[0] += x[i] * x[i] * i
    return y, total


def defined(function, signature):
    name = f"placed_test::{function.__name__}"
    return registry.known(name) or polyop.operator(f"{name}{signature}", polyop.kernel(function))


def draw(*shape, seed=0):
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape)


CASES = {  # the operator, its arguments, the placed dimensions of it and of its gradient
    "mean": (mean, "(Tensor x) -> Tensor", (draw(7),), "i", "i"),
    "column_means": (column_means, "(Tensor x) -> Tensor", (draw(7, 3),), "i", "i"),
    "positions": (positions, "(Tensor x) -> Tensor", (draw(8),), "i", "i"),
    "scaled_positions": (
        scaled_positions, "(Tensor x, float scale=2.0, int first=0) -> Tensor", (draw(7), 3.0, 2), "i", "i",
    ),
    "neighbours_summed": (neighbours_summed, "(Tensor x) -> Tensor", (draw(7),), "i", ""),
    "triangle": (triangle, "(Tensor x) -> Tensor", (draw(7, 7),), "i j", "i j"),
    "window": (window, "(Tensor x, Tensor w) -> Tensor", (draw(9, 8), draw(3, 2, seed=1)), "", "i j"),
    "all_but_two": (all_but_two, "(Tensor x) -> Tensor", (draw(8),), "", "i"),
    "all_but_two_positions": (all_but_two_positions, "(Tensor x) -> Tensor", (draw(8),), "i", "i"),
    "short_temporary": (short_temporary, "(Tensor x) -> Tensor", (draw(8),), "i", "i"),
    "spread": (spread, "(Tensor x) -> (Tensor, Tensor)", (draw(7),), "i", "i"),
}  # fmt: skip


def placed(bound, arguments):
    return {s.name: s for s in numpy_mesh.rule_of(bound, arguments).splits if s.placed}


def check_slices(bound, arguments, expected):
    strategies = placed(bound, arguments)
    assert " ".join(strategies) == expected
    whole = numpy_mesh.whole_outputs(bound, arguments)
    for strategy in strategies.values():
        for count in DEVICES:
            parts = numpy_mesh.run(bound, arguments, (count,), numpy_mesh.plan_with([strategy]))
            for one, other in zip(parts, whole, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12, err_msg=f"{strategy} on {count}")


@pytest.mark.slow(2)
@pytest.mark.parametrize("name", CASES)
def test_slices_are_the_whole(name):
    function, signature, arguments, expected, _ = CASES[name]
    check_slices(defined(function, signature), arguments, expected)


@pytest.mark.slow(2)
@pytest.mark.parametrize("name", CASES)
def test_slices_of_the_gradient_are_the_whole(name):
    function, signature, arguments, _, expected = CASES[name]
    bound = defined(function, signature)
    grads = [draw(*y.shape, seed=5) for y in numpy_mesh.whole_outputs(bound, arguments)]
    check_slices(*numpy_mesh.gradient_call(bound, arguments, grads), expected)


@pytest.mark.parametrize("function", [all_but_two, all_but_two_positions, short_temporary])
def test_explain_shows_the_halo_that_is_used(function):
    """Also of a gradient, and where a halo only makes slices long enough for a shorter output."""
    bound, x = defined(function, "(Tensor x) -> Tensor"), draw(8)
    text = explain(bound, (polyop.Spec(x.shape, "float64"),))
    (y,) = numpy_mesh.whole_outputs(bound, (x,))
    own, gradient = text.split("of gradient")
    for shown, call in ((own, (bound, (x,))), (gradient, numpy_mesh.gradient_call(bound, (x,), [y]))):
        (strategy,) = numpy_mesh.rule_of(*call).splits
        assert strategy.after == 2
        assert f" ({strategy.before} before, {strategy.after} after)" in shown
        assert ("for slices that know their place" in shown) == strategy.placed


def test_outputs_that_are_shorter_are_the_whole():
    """The kernel as it is, with a halo that makes its slices long enough."""
    bound = defined(all_but_two, "(Tensor x) -> Tensor")
    assert numpy_mesh.check_every_strategy(bound, (draw(8),), [(count,) for count in DEVICES]) > len(DEVICES)


def checks(kernel):
    return {note.text for note in schedule(kernel).notes if note.kind == "check"}


@pytest.mark.parametrize("name", CASES)
def test_indices_along_the_dimension_are_proved(name):
    """What each call is checked for is enough: an index is checked as often as in the kernel as it is."""
    function, _, arguments, *dimensions = CASES[name]
    types = [("float64", x.ndim) for x in arguments if isinstance(x, np.ndarray)]
    numbers = dict(zip(("scale", "first"), arguments[len(types) :], strict=False))
    own = parse(function, types, numbers)
    gradient = adjoint(own, [True] * len(own.outputs)).kernel
    for kernel, known, expected in zip(
        (own, gradient), ({}, sizes_from_forward(own, gradient)), dimensions, strict=True
    ):
        rows = {row.dimension.name: row for row in derive_slicing(kernel, known) if row.placed}
        assert " ".join(rows) == expected
        for row in rows.values():
            more = checks(placed_kernel(kernel, row, known)[0]) - checks(kernel)
            assert more == set()


WRONG = {  # the place of x[2:5] in 7 elements, and the error
    (2, 5, 3, 7): r"begin at max\(0, \w*_begin\) or before",
    (2, 6, 2, 7): r"end at min\(\w*_size, \w*_end\) or later",
    (2, 5, 2, 4): r"inside of 0 to \w*_size",
    (2, 5, -1, 7): r"inside of 0 to \w*_size",
}


@pytest.mark.parametrize("place", WRONG)
def test_tensors_that_lack_elements_of_the_slice_are_an_error(place):
    """Compiled, and interpreted."""
    bound = defined(positions, CASES["positions"][1])
    part = registry.obtain(f"{bound.name}__placed")
    with pytest.raises(KernelError, match=rf"tensors of a slice along i begin at .*{WRONG[place]}"):
        part(draw(7)[2:5], "i", *place)
    kernel = parse(positions, [("float64", 1)], {})
    placed, names = placed_kernel(kernel, derive_slicing(kernel)[0])
    with pytest.raises(ArgumentValueError, match=WRONG[place]):
        interpret(placed, [draw(7)[2:5]], dict(zip(names, place, strict=True)))


def test_inputs_of_other_sizes_than_in_the_proof_are_not_cut():
    """The shorter one would be cut too short in each slice."""

    def shorter_second(x, w):
        y = output_tensor((x.shape[0] - 2,), x.dtype)
        for i in range(x.shape[0] - 2):
            y[i] = x[i] * w[i] * i
        return y

    bound = defined(shorter_second, "(Tensor x, Tensor w) -> Tensor")
    assert [*placed(bound, (draw(8), draw(8)))] == ["i"]
    assert not placed(bound, (draw(8), draw(6)))


def test_a_slice_is_a_call_of_its_own():
    """The arguments of the part: the slice's tensors, the dimension, begin, end, start, size, attributes."""
    bound = defined(scaled_positions, CASES["scaled_positions"][1])
    part = registry.obtain("placed_test::scaled_positions__placed")
    assert part is registry.obtain(f"{bound.name}__placed")
    x = draw(7)
    (y,) = part(x[2:5], "i", 2, 5, 2, 7, 3.0, 2)
    np.testing.assert_allclose(y, bound(x, 3.0, 2)[2:5])


def test_a_dimension_that_is_whole_is_named():
    part = registry.obtain(f"{defined(mean, CASES['mean'][1]).name}__placed")
    with pytest.raises(ArgumentValueError, match=r"slice of loop kernel mean.* along i.* row"):
        part(draw(4), "row", 0, 4, 0, 4)
    part = registry.obtain(f"{defined(window, CASES['window'][1]).name}__placed")
    with pytest.raises(ArgumentValueError, match=r"slice of loop kernel window.* along i, j.* a"):
        part(draw(4, 5), draw(2, 3), "a", 0, 2, 0, 2)  # whole in each slice


def test_an_operator_that_writes_in_place_is_not_placed():
    def number(x):
        for i in range(x.shape[0]):
            x[i] = x[i] * i
        return x

    bound = polyop.operator("placed_test::number(Tensor(a!) x) -> Tensor(a!)", polyop.kernel(number))
    assert not placed(bound, (draw(5),))
    assert registry.obtain("placed_test::number__placed") is None
