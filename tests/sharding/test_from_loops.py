"""The strategies that are proved from loops, and that each of them is right on numbers, for gradients too."""

import functools
import pathlib
import re

import numpy as np
import pytest

import numpy_mesh
import polyop

pytestmark = pytest.mark.filterwarnings("ignore::polyop.UninitialisedWarning")
EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "internals" / "slices.py"
MESHES = ((1,), (3,), (7,), (2, 2))


@functools.cache
def operators():
    """The loop kernels of the example, by name; they stay in their file for the compiler to read."""
    scope = {}
    exec(compile(EXAMPLE.read_text().partition("SCALE = ")[0], str(EXAMPLE), "exec"), scope)
    rows = {}
    for function, specs in scope["OPERATORS"]:
        bound = polyop.kernel(function)
        tensors = [array(spec, seed) for seed, spec in enumerate(specs)]
        rows[function.__name__] = (bound, (*tensors, *(a.default for _, a in bound.schema.attributes())))
    return rows


def array(text, seed):
    """Numbers for a spec such as ``float32[4, 6]``, in double precision."""
    shape = tuple(map(int, re.findall(r"\d+", text.partition("[")[2])))
    numbers = np.random.default_rng(seed)
    return numbers.integers(0, 4, shape) if text.startswith("int") else numbers.uniform(0.5, 1.5, shape)


STRATEGIES = {  # by operator, those of it and those of its gradient
    "norm": (["i: S(0), R -> S(0)"], ["i: S(0), R, S(0) -> S(0), P(sum)"]),
    "matmul": (
        ["i: S(0), R -> S(0)", "k: S(1), S(0) -> P(sum)", "j: R, S(1) -> S(1)"],
        [
            "i: S(0), R, S(0) -> S(0), P(sum)",
            "k: S(1), S(0), R -> S(1), S(0)",
            "j: R, S(1), S(1) -> P(sum), S(1)",
        ],
    ),
    "softmax": (["i: S(0) -> S(0)"], ["i: S(0), S(0), S(0) -> S(0)"]),
    "column_sums": (
        ["i: S(0) -> P(sum)", "j: S(1) -> S(0)"],
        ["i: S(0), R -> S(0)", "j: S(1), S(0) -> S(1)"],
    ),
    "cumulative_sum": (["i: S(0) -> S(0)"], ["i: S(0) -> S(0)"]),
    "embedding": (
        ["k: S(0), R -> S(0)", "d: R, S(1) -> S(1)"],
        ["k: S(0), R, S(0) -> R, P(sum)", "d: R, S(1), S(1) -> R, S(1)"],
    ),
    "scatter_add": (
        ["k: S(0), S(0) -> P(sum)", "d: R, S(1) -> S(1)"],
        ["k: S(0), S(0), R -> R, S(0)", "d: R, S(1), S(1) -> R, S(1)"],
    ),
    "stencil": (["n: S(0) -> S(0), halo (1, 1)"], ["n: S(0) -> S(0), halo (2, 2)"]),
    "window": (
        ["i: S(0), R -> S(0), halo (0, 2)", "j: S(1), R -> S(1), halo (0, 1)"],
        [
            "e0: S(0), R, S(0) -> S(0), P(sum), halo (2, 2), placed",
            "e1: S(1), R, S(1) -> S(1), P(sum), halo (1, 1), placed",
        ],
    ),
    "scan": (
        ["b: S(1), S(0), S(0) -> S(1), S(0)"],
        ["b: S(1), S(0), S(0), S(1), S(0) -> S(1), S(0), S(0)"],
    ),
    "scores": (
        [
            "b: S(0), S(0) -> S(0)",
            "m: S(1), R -> S(1)",
            "d: S(2), S(2) -> P(sum)",
            "n: R, S(1) -> S(2)",
        ],
        [
            "b: S(0), S(0), S(0) -> S(0), S(0)",
            "m: S(1), R, S(1) -> S(1), P(sum)",
            "d: S(2), S(2), R -> S(2), S(2)",
            "n: R, S(1), S(2) -> P(sum), S(1)",
        ],
    ),
}


@pytest.mark.parametrize("name", STRATEGIES)
def test_strategies(name):
    bound, arguments = operators()[name]
    assert [*map(str, numpy_mesh.rule_of(bound, arguments).splits)] == STRATEGIES[name][0]


def gradient(name):
    bound, arguments = operators()[name]
    grads = [array(f"float64{list(y.shape)}", 9) for y in numpy_mesh.whole_outputs(bound, arguments)]
    return numpy_mesh.gradient_call(bound, arguments, grads)


@pytest.mark.parametrize("name", STRATEGIES)
def test_strategies_of_the_gradient(name):
    rule = numpy_mesh.rule_of(*gradient(name))
    assert [*map(str, rule.splits)] == STRATEGIES[name][1]


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_combination_is_the_whole(name):
    assert numpy_mesh.check_every_strategy(*operators()[name], MESHES) > len(MESHES)


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_combination_of_the_gradient_is_the_whole(name):
    assert numpy_mesh.check_every_strategy(*gradient(name), MESHES) > len(MESHES)
