"""The Python ``_Function``: the scenarios of MindSpore's tests, then others."""

import numpy as np
import pytest
import torch

import polyop.mindspore as ms
from polyop.mindspore import Tensor, _Function, ops


def function(forward, backward):
    """Return a _Function with this forward and backward."""
    return type("Mine", (_Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


def values(tensors):
    return [x.asnumpy().tolist() for x in tensors]


X, Y = Tensor(1.0), Tensor(2.0)


def test_two_inputs():
    mine = function(lambda ctx, x, y: x * y, lambda ctx, z: (z * 3, z * 4))
    assert values(ms.grad(mine.apply, (0, 1))(X, Y)) == [3.0, 4.0]


@pytest.mark.parametrize("count", [1, 3])
def test_a_wrong_number_of_gradients(count):
    mine = function(lambda ctx, x, y: x * y, lambda ctx, z: (z,) * count)
    rule = f"Mine.backward: Function backward return a wrong number of gradients, expect: 2 but: {count}"
    with pytest.raises(RuntimeError, match=rule):
        ms.grad(mine.apply, (0, 1))(X, Y)


def test_a_function_in_a_graph_is_refused():
    mine = function(lambda ctx, x: x * 2, lambda ctx, z: z * 5)

    class Net(ms.nn.Cell):
        def construct(self, x):
            return mine.apply(x)

    ms.set_context(mode=ms.GRAPH_MODE)
    with pytest.raises(NotImplementedError, match="Mine: a _Function runs in PYNATIVE_MODE only"):
        ms.grad(Net())(X)


def test_one_gradient_without_a_tuple():
    mine = function(lambda ctx, x: x * 2, lambda ctx, z: z * 5)
    assert ms.grad(mine.apply)(X).item() == 5.0


def test_two_outputs_by_name():
    mine = function(lambda ctx, x, y: (x * 3, y * 4), lambda ctx, a, b: (a * 3, b * 4))
    assert values(ms.grad(mine.apply, (0, 1))(X, Y)) == [3.0, 4.0]


def test_two_outputs_by_star():
    mine = function(lambda ctx, x, y: (x * 3, y * 4), lambda ctx, *args: (args[0] * 3, args[1] * 4))
    assert values(ms.grad(mine.apply, (0, 1))(X, Y)) == [3.0, 4.0]


def test_backward_takes_too_few_arguments():
    mine = function(lambda ctx, x, y: (x * 3, y * 4), lambda ctx, a: (a * 3, a * 4))
    with pytest.raises(TypeError, match="positional argument"):
        ms.grad(mine.apply, (0, 1))(X, Y)


def test_a_gradient_of_a_number():
    mine = function(lambda ctx, x, n: x * n, lambda ctx, z: (z, z))
    with pytest.raises(RuntimeError, match="Input is not tensor, but gradient is not none"):
        ms.grad(lambda x: mine.apply(x, 3))(X)
    right = function(lambda ctx, x, n: x * n, lambda ctx, z: (z * 3, None))
    assert ms.grad(lambda x: right.apply(x, 3))(X).item() == 3.0


def test_a_gradient_that_is_an_int():
    mine = function(lambda ctx, x: x * 2, lambda ctx, z: 2)
    with pytest.raises(RuntimeError, match="Gradient should be none or tensor, but got int"):
        ms.grad(mine.apply)(X)


def test_attributes_and_saved_tensors():
    recorded = {}

    def forward(ctx, x, y):
        ctx.age = 7
        ctx.save_for_backward(x, x * x, y)
        return x * 2

    def backward(ctx, dout):
        recorded["saved"], recorded["age"] = values(ctx.saved_tensors), ctx.age
        return dout * 2, None

    assert ms.grad(function(forward, backward).apply)(Tensor(3.0), Y).item() == 2.0
    assert recorded == {"saved": [3.0, 9.0, 2.0], "age": 7}


def test_only_tensors_are_saved():
    mine = function(lambda ctx, x: ctx.save_for_backward(x, 3), lambda ctx, z: z)
    with pytest.raises(TypeError, match="save_for_backward: argument 1: takes tensors and None"):
        mine.apply(X)


def test_a_saved_none_stays_in_its_place():
    recorded = []

    def forward(ctx, x):
        ctx.save_for_backward(None, x)
        return x * 2

    def backward(ctx, dout):
        recorded.extend(ctx.saved_tensors)
        return dout

    ms.grad(function(forward, backward).apply)(X)
    assert recorded[0] is None
    assert recorded[1].item() == 1.0


def test_needs_input_grad_in_both():
    recorded = []

    def forward(ctx, x, y):
        recorded.append(ctx.needs_input_grad)
        return x * y

    def backward(ctx, dout):
        recorded.append(ctx.needs_input_grad)
        return dout, None

    assert ms.grad(function(forward, backward).apply)(X, Y).item() == 1.0
    assert recorded == [(True, False), (True, False)]


def add_one(ctx, x):
    x.add_(1)
    ctx.mark_dirty(x)
    return x


def test_a_dirty_input_that_is_not_returned():
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x * 2

    mine = function(forward, lambda ctx, z: z)
    with pytest.raises(
        RuntimeError, match=r"Mine: The dirty tensors must all be outputs of the forward function\."
    ):
        ms.grad(lambda x: mine.apply(x * 1))(X)


def test_a_leaf_that_is_marked_dirty():
    mine = function(add_one, lambda ctx, z: z)
    with pytest.raises(
        RuntimeError, match="A leaf tensor that need grad is being used in an inplace operator"
    ):
        ms.grad(mine.apply)(Tensor(1.0))


def test_a_dirty_input_without_gradient():
    def forward(ctx, x, y):
        return x * 2, add_one(ctx, y)

    mine = function(forward, lambda ctx, dx, dy: (dx * 2, None))
    x, y = Tensor([1.0]), Tensor([5.0])
    assert values([ms.grad(lambda x: mine.apply(x, y))(x)]) == [[2.0]]
    assert y.item() == 6.0


def test_a_dirty_input_with_gradient():
    def forward(ctx, x, y):
        y.add_(x)
        ctx.mark_dirty(y)
        return y

    mine = function(forward, lambda ctx, dout: (dout, dout))
    result = ms.grad(lambda x, y: mine.apply(x, y * 2), (0, 1))(Tensor([1.0]), Tensor([3.0]))
    assert values(result) == [[1.0], [2.0]]


def test_a_dirty_view_among_several_outputs():
    def forward(ctx, x):
        x.add_(1)
        ctx.mark_dirty(x)
        return x, x * 2

    mine = function(forward, lambda ctx, a, b: a + 2 * b)
    with pytest.raises(RuntimeError, match="Mine: A view is one of output for multi output operator"):
        ms.grad(lambda x: mine.apply((x * 1)[0:1]))(Tensor([1.0, 2.0]))


def test_an_output_that_is_an_input():
    mine = function(lambda ctx, x: x, lambda ctx, dout: dout * 2)
    result = ms.grad(lambda x: mine.apply(ops.split(x * 1, 1)[1]))(Tensor([1.0, 2.0]))
    assert values([result]) == [[0.0, 2.0]]


VIEW = "This view tensor is output of custom cell, which has custom bprop, it may not support view\\+inplace"


def test_writing_an_output_that_is_the_input():
    mine = function(lambda ctx, x: x, lambda ctx, dout: dout * 2)
    with pytest.raises(RuntimeError, match=VIEW):
        ms.grad(lambda x: mine.apply(x * 1).add_(1))(Tensor([1.0, 2.0]))


def test_writing_a_returned_view():
    mine = function(lambda ctx, x: x[0:1], lambda ctx, dout: ops.concat([dout, dout]))
    with pytest.raises(RuntimeError, match=VIEW):
        ms.grad(lambda x: mine.apply(x * 1).mul_(2))(Tensor([1.0, 2.0]))


def test_writing_a_view_among_several_outputs():
    mine = function(lambda ctx, x: (x[0:1], x[1:2]), lambda ctx, a, b: ops.concat([a, b]))
    with pytest.raises(RuntimeError, match="A view of base is being inplace modified"):
        ms.grad(lambda x: mine.apply(x * 1)[0].mul_(2))(Tensor([1.0, 2.0]))


@pytest.mark.parametrize("returned", [lambda x: x * 2, lambda x: x], ids=["new", "input"])
def test_an_output_without_gradient(returned):
    def forward(ctx, x):
        out = returned(x)
        ctx.mark_non_differentiable(out)
        return out

    mine = function(forward, lambda ctx, dout: dout * 100)
    assert values([ms.grad(lambda x: mine.apply(x * 1))(Tensor([1.0, 2.0]))]) == [[0.0, 0.0]]


@pytest.mark.parametrize("materialise", [True, False])
def test_the_gradient_of_an_unused_output(materialise):
    recorded = []

    def forward(ctx, x, y):
        ctx.set_materialize_grads(materialise)
        return x * 1, y * 1

    def backward(ctx, a, b):
        recorded.append(b)
        return a, a * 2

    mine = function(forward, backward)
    assert values(ms.grad(lambda x, y: mine.apply(x, y)[0], (0, 1))(X, Y)) == [1.0, 2.0]
    assert recorded[0].item() == 0.0 if materialise else recorded[0] is None


def test_attributes_of_tensors_survive():
    recorded = []

    def forward(ctx, x):
        x.note = "forward"
        out = x * 2
        out.note = "out"
        ctx.save_for_backward(x)
        return out

    def backward(ctx, dout):
        recorded.append(ctx.saved_tensors[0].note)
        return dout

    def net(x):
        x = x * 1
        out = function(forward, backward).apply(x)
        recorded.extend([x.note, out.note])
        return out

    ms.grad(net)(X)
    assert recorded == ["forward", "out", "forward"]


def test_gradients_take_the_dtype_of_the_input():
    mine = function(lambda ctx, x: x * 2, lambda ctx, dout: Tensor([3, 4], ms.int64))
    result = ms.grad(mine.apply)(Tensor([1.0, 2.0]))
    assert result.dtype == ms.float32
    assert values([result]) == [[3.0, 4.0]]


@pytest.mark.parametrize("shape", [(3,), (1, 3), (2, 1), (), (1,)])
def test_gradients_are_summed_to_the_shape_of_the_input(shape):
    mine = function(lambda ctx, x: ops.broadcast_to(x, (2, 3)) * 1, lambda ctx, dout: dout)
    result = ms.grad(mine.apply)(Tensor(np.ones(shape, np.float32)))
    assert result.shape == shape
    assert np.all(result.asnumpy() == 6 // max(np.prod(shape), 1))


@pytest.mark.parametrize("shape", [(3,), (1,), (2, 3)])
def test_gradients_of_another_shape(shape):
    mine = function(lambda ctx, x: x * 2, lambda ctx, dout: ops.ones(shape))
    rule = "For custom function, grad tensor should be broadcast to input shape"
    with pytest.raises(RuntimeError, match=rule):
        ms.grad(mine.apply)(Tensor([1.0, 2.0]))


def test_a_saved_tensor_that_was_written_since():
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    mine = function(forward, lambda ctx, dout: ctx.saved_tensors[0] * 2 * dout)

    def net(x):
        inner = x * 1
        out = mine.apply(inner)
        inner.add_(1)
        return out

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        ms.grad(net)(X)


def test_second_derivative():
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    mine = function(forward, lambda ctx, dout: ctx.saved_tensors[0] ** 2 * 3 * dout)
    assert ms.grad(ms.grad(mine.apply))(Tensor(2.0)).item() == 12.0


def test_forward_and_backward_get_mindspore_tensors():
    kinds = []

    def forward(ctx, x):
        kinds.append(type(x.astype(ms.float64)))
        return x * 2

    def backward(ctx, dout):
        kinds.append(type((dout * 2).astype(ms.float32)))
        return dout

    assert type(ms.grad(function(forward, backward).apply)(X)) is Tensor
    assert kinds == [Tensor, Tensor]


def test_without_forward_or_backward():
    with pytest.raises(NotImplementedError, match="needs a static method forward"):
        _Function.apply(X)
    mine = type("Half", (_Function,), {"forward": staticmethod(lambda ctx, x: x * 2)})
    with pytest.raises(NotImplementedError, match="needs a static method backward"):
        ms.grad(mine.apply)(X)


def test_plain_tensors_of_pytorch():
    mine = function(lambda ctx, x: x * 2, lambda ctx, dout: dout * 5)
    x = torch.ones(2, requires_grad=True)
    mine.apply(x).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]
