"""Arguments that are written: what is returned of them, in graphs and beside gradients."""

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn

import polyop
from polyop.core.errors import GradientError

X, Y = np.array([0.5, -1.25, 2.0], np.float32), np.array([3.0, 4.0, -5.0], np.float32)


def _add_(x, y):
    x += y


ADD_ = polyop.operator("ms_written::add_(Tensor(a!) x, Tensor y) -> Tensor(a!)", _add_)
ADD_ONLY = polyop.operator("ms_written::add_only(Tensor(a!) x, Tensor y) -> ()", _add_)
SCALED = polyop.operator(
    "ms_written::scaled(Tensor(a!) total, Tensor y) -> Tensor",
    lambda total, y: (_add_(total, y), y * 2)[1],
    infer=lambda total, y: y,
)


def same(tensor, expected):
    np.testing.assert_allclose(tensor.asnumpy(), expected, rtol=1e-6)


def test_what_is_returned_can_be_written_again(mode):
    @mode
    def call(x, y):
        before = x * 10
        first = ADD_(x, y)
        between = x * 1
        ADD_(first, y)
        return before, between, x * 1

    x = Tensor(X.copy())
    before, between, after = call(x, Tensor(Y))
    same(before, 10 * X)
    same(between, X + Y)
    same(after, X + 2 * Y)
    same(x, X + 2 * Y)


def _swap_(x, y):
    x[...] = 2 * y
    y *= 3


SWAP_ = polyop.operator("ms_written::swap_(Tensor(a!) x, Tensor(b!) y) -> (Tensor(a!), Tensor(b!))", _swap_)


def test_float64_that_is_read_and_written_keeps_its_bits(mode):
    """MindSpore copies such tensors of a graph by way of float32: see docs/mindspore-host.md."""

    @mode
    def both(x, y):
        SWAP_(x, y)
        return SWAP_(x, y)

    @mode
    def twice(x, y):
        ADD_(x, y)
        ADD_(x, y)
        return x

    third, seventh = np.full(3, 1 / 3), np.full(3, 1 / 7)
    x, y = Tensor(third), Tensor(seventh)
    first, second = both(x, y)
    for tensor, expected in (
        (first, seventh * 3 * 2),
        (x, seventh * 3 * 2),
        (second, seventh * 9),
        (y, seventh * 9),
    ):
        np.testing.assert_allclose(tensor.asnumpy(), expected, rtol=1e-15)
    x, y = Tensor(third), Tensor(seventh)
    np.testing.assert_allclose(twice(x, y).asnumpy(), third + seventh + seventh, rtol=1e-15)
    np.testing.assert_allclose(x.asnumpy(), third + seventh + seventh, rtol=1e-15)


@pytest.mark.parametrize("op", [ADD_, ADD_ONLY, SCALED], ids=["returned", "not returned", "another output"])
def test_a_buffer_beside_an_input_that_is_differentiated(op, context):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.total = Parameter(Tensor(np.zeros(3, np.float32)), name="total", requires_grad=False)

        def construct(self, x):
            op(self.total, x * 2)
            return (x * x).sum()

    net = Net()
    for step in (1, 2, 3):
        same(ms.grad(net)(Tensor(X)), 2 * X)
        same(net.total.value(), 2 * step * X)
        assert not net.total.requires_grad


@pytest.mark.parametrize("op", [ADD_, ADD_ONLY], ids=["returned", "not returned"])
def test_a_tensor_beside_an_input_that_is_differentiated(op):
    total = Tensor(np.zeros(3, np.float32))

    def unused(x):
        op(total, x * 1)
        op(total, x * 1)
        return (x * x).sum()

    def used(x):
        op(total, x * 1)
        return (total * x).sum()

    for step in (1, 2):
        same(ms.grad(unused)(Tensor(X)), 2 * X)
        same(total, 2 * step * X)
    with pytest.raises(
        GradientError, match="writes an argument in place, and such an operator has no gradient"
    ):
        ms.grad(used)(Tensor(X))


def test_a_gradient_through_what_is_written_in_a_graph():
    @ms.jit
    def call(x, total):
        ADD_ONLY(total, x * 1)
        return (total * x).sum()

    with pytest.raises(
        RuntimeError, match="writes an argument in place, and such an operator has no gradient"
    ):
        ms.grad(call)(Tensor(X), Tensor(Y.copy()))
