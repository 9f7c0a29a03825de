"""The strategies that are proved from loops, and that each of them is right on numbers, for gradients too."""

import numpy as np
import pytest

import numpy_mesh
import polyop
from polyop.core.spec import Spec
from polyop.sharding.of_call import sharding_rule
from twelve_operators import twelve_operators

pytestmark = pytest.mark.filterwarnings("ignore::polyop.UninitialisedWarning")
MESHES = ((1,), (3,), (7,), (2, 2))


def call(name):
    """An operator, and the arguments of a call in double precision."""
    sample = next(sample for sample in twelve_operators() if sample.name == name)
    tensors = [x.astype(np.float64) if x.dtype == np.float32 else x for x in sample.inputs]
    return sample.operator, (*tensors, *(a.default for _, a in sample.operator.schema.attributes()))


def gradient(name):
    """The operator of the derived gradient, and the arguments of a call."""
    bound, arguments = call(name)
    draw = np.random.default_rng(9)
    grads = [draw.uniform(0.5, 1.5, y.shape) for y in numpy_mesh.whole_outputs(bound, arguments)]
    return numpy_mesh.gradient_call(bound, arguments, grads)


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
            "i: S(0), R, S(0) -> S(0), P(sum), halo (2, 2), placed",
            "j: S(1), R, S(1) -> S(1), P(sum), halo (1, 1), placed",
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
    assert [*map(str, numpy_mesh.rule_of(*call(name)).splits)] == STRATEGIES[name][0]


@pytest.mark.slow(2)
@pytest.mark.parametrize("name", STRATEGIES)
def test_strategies_of_the_gradient(name):
    rule = numpy_mesh.rule_of(*gradient(name))
    assert [*map(str, rule.splits)] == STRATEGIES[name][1]


LINEAR = {  # by operator, the strategies with partial inputs of it and of its gradient
    "norm": (["none: R, P(sum) -> P(sum)"], ["none: R, P(sum), R -> P(sum), R", "none: R, R, P(sum) -> P(sum), P(sum)"]),
    "matmul": (
        ["none: P(sum), R -> P(sum)", "none: R, P(sum) -> P(sum)"],
        ["none: R, R, P(sum) -> P(sum), P(sum)", "none: P(sum), P(sum), R -> P(sum), P(sum)"],
    ),
    "softmax": ([], ["none: R, R, P(sum) -> P(sum)"]),
    "column_sums": (["none: P(sum) -> P(sum)"], ["none: R, P(sum) -> P(sum)"]),
    "embedding": (["none: R, P(sum) -> P(sum)"], ["none: R, R, P(sum) -> R, P(sum)"]),
    "scan": (
        ["none: P(sum), R, P(sum) -> P(sum), P(sum)"],
        [
            "none: P(sum), R, P(sum), R, R -> R, P(sum), R",
            "none: R, R, R, P(sum), P(sum) -> P(sum), P(sum), P(sum)",
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LINEAR)
def test_partial_inputs(name):
    expected = LINEAR[name]
    for one, made in zip((call(name), gradient(name)), expected, strict=True):
        rule = numpy_mesh.rule_of(*one)
        assert {str(s) for s in rule.strategies[1:] if not s.name} == {*made}


@pytest.mark.slow(2)
@pytest.mark.parametrize("name", STRATEGIES)
def test_every_combination_is_the_whole(name):
    assert numpy_mesh.check_every_strategy(*call(name), MESHES) > len(MESHES)


@pytest.mark.slow(1)
@pytest.mark.parametrize("name", STRATEGIES)
def test_every_combination_of_the_gradient_is_the_whole(name):
    assert numpy_mesh.check_every_strategy(*gradient(name), MESHES) > len(MESHES)


def test_a_loop_may_have_the_name_of_another_dimension_that_is_claimed():
    def row_sums(x):
        y = output_tensor((x.shape[0],), x.dtype)  # noqa: F821 - a word of the language
        for i in range(x.shape[0]):
            y[i] = 0.0
            for j in range(x.shape[1]):
                y[i] += x[i, j]
        return y

    operator = polyop.operator(
        "from_loops::row_sums(Tensor x) -> Tensor", polyop.kernel(row_sums), dims="j i -> j", parallel="j"
    )
    rule = sharding_rule(operator.operator, (Spec((4, 6), "float64"),))
    assert [str(strategy) for strategy in rule.splits] == ["j: S(0) -> S(0)"]


@pytest.fixture(scope="module")
def before():
    @polyop.kernel(name="from_loops_tests::before")
    def before(x, k: int, m: int):
        y = output_tensor(x.shape, x.dtype)  # noqa: F821 - a word of the language
        for i in range(x.shape[0]):
            if i >= m and 0 <= i - k - m < x.shape[0]:
                y[i] = x[i - m] + x[i - k - m]
        return y

    return before


@pytest.mark.parametrize(("k", "m"), [(1, 2), (3, 0), (0, 2), (-1, 2), (-3, 5), (-2, 2)])
def test_which_of_two_halos_is_the_wider_depends_on_an_attribute(before, k, m):
    """The proof took k for at least 0. Where it is not, the call is not cut into such slices."""
    arguments = (np.arange(1.0, 13), k, m)
    widths = [(s.before, s.after) for s in numpy_mesh.rule_of(before, arguments).splits]
    assert widths == ([(k + m, 0)] if k >= 0 else [])
    assert numpy_mesh.check_every_strategy(before, arguments, MESHES)
