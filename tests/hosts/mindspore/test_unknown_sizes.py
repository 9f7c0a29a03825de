"""Graphs whose sizes are known only when they run."""
# ruff: noqa: F821 - the words of the loop language

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, ops

import polyop
from polyop.core.errors import GradientError, InferError, UnsupportedError
from polyop.hosts.mindspore.unknown_sizes import shapes_for

X = np.array([1.0, 0.0, 3.0], np.float32)
SCALE = polyop.operator(
    "ms_unknown::scale(Tensor x, float a=1.0) -> Tensor", lambda x, a: (x * a).astype(x.dtype), infer="x"
)
MATMUL = polyop.operator(
    "ms_unknown::matmul(Tensor x, Tensor y) -> Tensor", lambda x, y: x @ y, dims="i j, j k -> i k"
)
PAIRS = polyop.operator(
    "ms_unknown::pairs(Tensor x) -> Tensor",
    lambda x: x.reshape(-1, 2).sum(1),
    infer=lambda x: polyop.Spec((x.shape[0] // 2,), x.dtype),
)


def test_a_size_that_depends_on_data():
    @ms.jit
    def call(x):
        return SCALE(ops.nonzero(x).astype(ms.float32), 2.0)

    assert call(Tensor(X)).asnumpy().tolist() == [[0.0], [4.0]]
    assert call(Tensor(np.float32([0, 0, 5]))).asnumpy().tolist() == [[4.0]]


def test_two_operators_in_a_row():
    @ms.jit
    def call(x):
        return PAIRS(PAIRS(ops.nonzero(x).astype(ms.float32).reshape(-1)))

    assert call(Tensor(np.ones(8, np.float32))).asnumpy().tolist() == [6.0, 22.0]


def infer(operator):
    def shapes(given):
        arguments = tuple(polyop.Spec(shape, "float32") for shape in given)
        return [spec.shape for spec in operator.operator.infer(arguments)]

    return shapes


@pytest.mark.parametrize(("operator", "shapes", "expected"), [
    (MATMUL, [(-1, -1), (-1, 5)], (-1, 5)),
    (MATMUL, [(7, -1), (3, -1)], (7, -1)),  # j can only be 3
    (PAIRS, [(-1,)], (-1,)),
    (PAIRS, [(-2,)], (-1,)),
])  # fmt: skip
def test_shapes_with_unknown_sizes(operator, shapes, expected):
    assert shapes_for(shapes, infer(operator)) == [expected]


def test_an_unknown_rank():
    assert shapes_for([(-2,), (3,)], lambda given: [given[0], given[1]]) == [(-2,), (3,)]


def convolved(given):
    (n, _, h, w), (out, _, kh, kw) = given
    return [(n, out, h - kh + 1, w - kw + 1)]


def odd_ones(given):
    if given[0][0] % 2 == 0:
        raise InferError("ms_unknown::odd_ones", "must have an odd size")
    return given


@pytest.mark.parametrize(("infer", "shapes", "expected"), [
    (convolved, [(-1,) * 4, (-1,) * 4], (-1,) * 4),  # too many combinations to ask
    (convolved, [(-1,) * 4, (8, 3, 3, 3)], (-1, 8, -1, -1)),
    (lambda given: [(max(given[0][0], 256),)], [(-1,)], (-1,)),
    (odd_ones, [(-1,)], (-1,)),
])  # fmt: skip
def test_a_size_that_differs_is_not_called_known(infer, shapes, expected):
    assert shapes_for(shapes, infer) == [expected]


def test_an_unknown_rank_of_an_operator_of_pytorch():
    """PyTorch refuses some of the sizes that stand for unknown ones: such a tensor would be too large."""
    pytest.importorskip("torch", reason="not run: the operator is PyTorch's")
    assert shapes_for([(-2,)], infer(polyop.aten("sin"))) == [(-2,)]


def test_sizes_that_fit_none():
    with pytest.raises(InferError, match=r"ms_unknown::matmul.*j"):
        shapes_for([(-1, 4), (3, 5)], infer(MATMUL))


def test_what_is_refused_is_said_when_the_graph_is_compiled():
    @ms.jit
    def call(x, y):
        return MATMUL(ops.nonzero(x).astype(ms.float32), y)  # of one column, and y has two rows

    with pytest.raises(InferError, match="ms_unknown::matmul"):
        call(Tensor(X), Tensor(np.ones((2, 2), np.float32)))


def test_what_only_a_run_shows_is_an_error_of_the_run():
    @ms.jit
    def call(x, y):
        return MATMUL(y, ops.nonzero(x).astype(ms.float32))  # as many rows as x has items that are not 0

    y = Tensor(np.ones((1, 2), np.float32))
    assert call(Tensor(X), y).asnumpy().tolist() == [[2.0]]
    with pytest.raises(RuntimeError, match="ms_unknown::matmul"):
        call(Tensor(np.ones(3, np.float32)), y)


def add_sum(x, y):
    x += y.sum()


def test_an_argument_that_is_written():
    bump = polyop.operator("ms_unknown::bump(Tensor(a!) x, Tensor y) -> ()", add_sum)
    total = ms.Parameter(Tensor(np.zeros(2, np.float32)), name="total", requires_grad=False)

    @ms.jit
    def call(x):
        bump(total, ops.nonzero(x).astype(ms.float32))
        return total + 0

    with pytest.raises(
        UnsupportedError, match="sizes that are known(.|\n)*where the operator writes an argument"
    ):
        call(Tensor(X))


def squared(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i]
    return y


def test_the_gradient_of_a_loop_kernel():
    square = polyop.kernel(squared, name="ms_unknown::squared")

    @ms.jit
    def loss(x):
        return square(ops.gather(x, ops.nonzero(x).reshape(-1), 0)).sum()

    assert loss(Tensor(X)).asnumpy() == 10
    with pytest.raises(UnsupportedError, match=r"sizes that are known(.|\n)*the gradient of a loop kernel"):
        ms.jit(ms.grad(loss))(Tensor(X))


def times_two_x(x, out, dout):
    return (2 * x * dout,)


def on_arrays(x, out, dout):
    return (2 * np.asarray(x) * np.asarray(dout),)


def added_up(x, out, dout):
    return ((2 * x * dout).sum(),)


def squares_above_zero(rule):
    square = polyop.operator(
        f"ms_unknown::{rule.__name__}(Tensor x) -> Tensor", lambda x: x * x, infer="x", gradient=rule
    )

    @ms.jit
    def loss(x):
        return square(ops.gather(x, ops.nonzero(x).reshape(-1), 0)).sum()

    return ms.jit(ms.grad(loss))


@pytest.mark.filterwarnings("ignore::polyop.FallbackWarning")  # one rule runs on arrays
@pytest.mark.parametrize("rule", [times_two_x, on_arrays])
def test_the_gradient_of_an_author_s_rule(rule):
    gradient = squares_above_zero(rule)
    assert gradient(Tensor(X)).asnumpy().tolist() == [2.0, 0.0, 6.0]
    assert gradient(Tensor(np.float32([0, 0, 5]))).asnumpy().tolist() == [0.0, 0.0, 10.0]


def test_a_rule_whose_gradient_has_another_number_of_dimensions():
    with pytest.raises(GradientError, match=r"gradient of x: must have the input's shape \(None,\)"):
        squares_above_zero(added_up)(Tensor(X))
