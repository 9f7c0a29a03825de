"""Arguments that are written: results in both modes, in graphs and with gradients."""

import os

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn
from mindspore.ops._vmap import get_vmap_rule

import polyop
from polyop.core.errors import GradientError, UnsupportedError

pytestmark = pytest.mark.filterwarnings("ignore:ms_written.*one call per sample")

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


def test_a_result_can_be_written_again(mode):
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
    """MindSpore copies such tensors of a graph by way of float32: see docs/hosts/mindspore.md."""

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


def test_a_gradient_through_a_written_tensor_in_a_graph():
    @ms.jit
    def call(x, total):
        ADD_ONLY(total, x * 1)
        return (total * x).sum()

    with pytest.raises(
        RuntimeError, match="writes an argument in place, and such an operator has no gradient"
    ):
        ms.grad(call)(Tensor(X), Tensor(Y.copy()))


JUST_ADD = lambda x, y: ADD_(x, y)  # noqa: E731 - a lambda is what many pass


def _written(x, y):
    ADD_ONLY(x, y)
    return x * 1


def _through_a_temporary(x, y):
    total = x * 1
    first = SCALED(total, y)
    return total + first - 2 * y


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("shared", [False, True], ids=["own", "shared"])
@pytest.mark.parametrize("call", [JUST_ADD, _written, _through_a_temporary])
def test_vmap_item_by_item(call, shared, axis, context):
    x, y = np.stack([X, 2 * X]), (Y if shared else np.stack([Y, -Y]))
    inputs = Tensor(np.ascontiguousarray(np.moveaxis(x, 0, axis)))
    axes = (axis, None if shared else 0)
    same(ms.vmap(call, in_axes=axes)(inputs, Tensor(y)), x + y)
    after = x if call is _through_a_temporary else x + y
    same(inputs, np.moveaxis(after, 0, axis))


def _triple_(x, by):
    x *= by


TRIPLE = polyop.operator("ms_written::triple(Tensor(a!) x, float by=3.0) -> Tensor(a!)", _triple_)


def _alone(x):
    TRIPLE(x)
    return x * 1


def test_vmap_over_one_tensor(context):
    x = np.stack([X, Y])
    for call, data in ((_alone, x), (_alone, x[:1]), (ms.vmap(_alone), np.stack([x, 2 * x]))):
        inputs = Tensor(data.copy())
        same(ms.vmap(call)(inputs), 3 * data)
        same(inputs, 3 * data)


def test_vmap_in_which_no_written_tensor_is_batched(context):
    def call(x, count, one):
        total = ms.ops.zeros_like(one)
        ADD_ONLY(total, one)
        ADD_ONLY(count, one)
        return x + total

    x, count = np.stack([X, 2 * X]), Tensor(Y.copy())
    same(ms.vmap(call, in_axes=(0, None, None))(Tensor(x), count, Tensor(Y)), x + Y)
    same(count, 2 * Y)


def test_vmap_with_several_outputs(context):
    x, total = np.stack([X, Y]), Tensor(np.stack([Y, X]))

    def call(total, x):
        doubled = SCALED(total, x)
        return doubled, total * 1

    doubled, after = ms.vmap(call)(total, Tensor(x))
    same(doubled, 2 * x)
    same(after, x + x[::-1])
    same(total, x + x[::-1])


def test_vmap_that_would_write_every_item_into_one_tensor(context):
    """The rule and the message are those of MindSpore's assign."""
    x, y = Tensor(X.copy()), Tensor(np.stack([Y, -Y]))
    with pytest.raises(ValueError, match="source axis of `variable` is None, but"):
        ms.vmap(JUST_ADD, in_axes=(None, 0))(x, y)
    same(x, X)


def test_vmap_leaves_other_custom_operators(context):
    other = ms.ops.Custom(lambda x: x * 2, out_shape=lambda x: x, out_dtype=lambda x: x, func_type="pyfunc")
    ms.vmap(JUST_ADD)(Tensor(np.stack([X, Y])), Tensor(np.stack([X, Y])))
    assert get_vmap_rule(other, 2) is None


@pytest.mark.skipif(
    os.environ.get("POLYOP_SANITIZED") == "address",
    reason="MindSpore's own copy of a constant in nested vmap reads a byte too many, which ends the process",
)
def test_vmap_of_vmap(context):
    x = np.stack([np.stack([X, Y]), np.stack([Y, 2 * X])])
    inputs = Tensor(x.copy())
    same(ms.vmap(ms.vmap(JUST_ADD))(inputs, Tensor(x * 3)), 4 * x)
    same(inputs, 4 * x)


KEPT = Tensor(np.zeros(3, np.float32))


def _made_in_the_graph(x):
    total = ms.ops.zeros((3,), ms.float32)
    return ADD_(total, x)


def _kept_outside(x):
    ADD_(KEPT, x)
    return KEPT * 1


@pytest.mark.parametrize("call", [_made_in_the_graph, _kept_outside])
def test_a_constant_of_a_graph_cannot_be_written(call):
    """MindSpore's own assign writes it: readers in the graph see the old value, the next run the new one."""
    message = "ms_written::add_: tensor 0: is written and is a constant of the graph.*\n.*\n  .*ms.mutable.*zeros_like"
    with pytest.raises(UnsupportedError, match=message):
        ms.jit(call)(Tensor(X))
    same(KEPT, np.zeros(3))


def test_a_tensor_that_a_graph_computes_can_be_written():
    @ms.jit
    def call(x):
        return ADD_(ms.ops.zeros_like(x), x)

    for _ in range(2):
        same(call(Tensor(X)), X)
