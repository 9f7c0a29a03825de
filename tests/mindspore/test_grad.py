"""``grad``, ``value_and_grad`` and older forms: results and their structure."""

import numpy as np
import pytest
import torch

import polyop.mindspore as ms
from polyop.mindspore import Parameter, ParameterTuple, Tensor, nn, ops

X, Y = Tensor(2.0), Tensor(3.0)


class Scaled(nn.Cell):
    def __init__(self):
        super().__init__()
        self.p, self.q = Parameter(2.0), Parameter(5.0, requires_grad=False)

    def construct(self, x, y):
        return x * y * self.p + self.q


def plain(result):
    """Return the structure with numbers in place of tensors."""
    if isinstance(result, tuple):
        return tuple(map(plain, result))
    assert type(result) is Tensor
    assert not result.requires_grad
    return result.asnumpy().tolist()


NET = Scaled()
ONE, LISTED = NET.p, NET.trainable_params()


@pytest.mark.parametrize(
    ("position", "weights", "expected"),
    [
        (0, None, 6.0),
        (1, None, 4.0),
        ((0,), None, 6.0),
        ((1, 0), None, (4.0, 6.0)),
        (None, ONE, 6.0),
        (None, LISTED, (6.0,)),
        (None, ParameterTuple(LISTED), (6.0,)),
        (0, ONE, (6.0, 6.0)),
        ((0, 1), LISTED, ((6.0, 4.0), (6.0,))),
    ],
)
def test_structure(position, weights, expected):
    assert plain(ms.grad(NET, position, weights)(X, Y)) == expected
    assert plain(ms.value_and_grad(NET, position, weights)(X, Y)) == (17.0, expected)
    assert plain(ops.grad(NET, position, weights)(X, Y)) == expected


def test_the_output_of_the_seed_programs():
    value, result = ms.value_and_grad(NET, (0, 1), NET.trainable_params())(X, Y)
    assert f"out: {value}" == "out: 17.0"
    first = "(Tensor(shape=[], dtype=Float32, value= 6), Tensor(shape=[], dtype=Float32, value= 4))"
    assert str(result[0]) == first
    assert str(result[1]) == "(Tensor(shape=[], dtype=Float32, value= 6),)"


def test_only_the_first_output_with_has_aux():
    def fn(x, y):
        return x * y, x + 10, y

    assert plain(ms.grad(fn, (0, 1), None, True)(X, Y)) == ((3.0, 2.0), (12.0, 3.0))
    assert plain(ms.value_and_grad(fn, 0, None, True)(X, Y)) == ((6.0, 12.0, 3.0), 3.0)


def test_several_outputs_are_summed():
    assert plain(ms.grad(lambda x: (x * x, 3 * x))(X)) == 7.0


def test_outputs_that_are_no_scalars_are_summed():
    assert plain(ms.grad(lambda x: x * x)(Tensor([1.0, 4.0, 9.0]))) == [2.0, 8.0, 18.0]


def test_gradients_of_unused_inputs_are_zero():
    number = Tensor([1, 2])
    result = ms.grad(lambda x, y, n: x * 2, (1, 2))(X, Y, number)
    assert plain(result) == (0.0, [0, 0])
    assert result[1].dtype == ms.int64
    assert plain(ms.grad(lambda x: ops.stop_gradient(x) * 2)(X)) == 0.0


def test_inputs_that_are_lists():
    result = ms.grad(lambda pair: pair[0] * pair[1])([X, Y])
    assert [float(g) for g in result] == [3.0, 2.0]


def test_nested_gradients():
    assert plain(ms.grad(ms.grad(lambda x: x**3))(X)) == 12.0
    assert plain(ms.grad(ms.grad(ms.grad(lambda x: x**4)))(X)) == 48.0
    assert plain(ms.grad(lambda x: ms.grad(lambda y: x * y * y)(Y))(X)) == 6.0


def test_keyword_arguments_and_the_name():
    def cube(x, *, power):
        return x**power

    taken = ms.grad(cube)
    assert taken.__name__ == "cube"
    assert plain(taken(X, power=3)) == 12.0


def test_inputs_are_left_alone():
    x = Tensor([1.0])
    ms.grad(lambda x: x * x)(x)
    assert not x.requires_grad


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((3,), TypeError, "fn must be a function or a Cell, but got int"),
        ((NET, None), ValueError, "grad_position and weights cannot both be None"),
        ((NET, 1.0), TypeError, "grad_position must be an int, a tuple of ints or None, but got 1.0"),
        ((NET, True), TypeError, "grad_position must be an int"),
        (
            (NET, 0, 3),
            TypeError,
            "weights must be a Parameter, or a list or ParameterTuple of them, but got int",
        ),
        ((NET, 0, None, False, True), NotImplementedError, "return_ids is not supported"),
    ],
)
def test_wrong_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        ms.grad(*arguments)


def test_positions_of_arguments_without_a_tensor():
    with pytest.raises(ValueError, match="position 2 is outside of the 2 inputs"):
        ms.grad(NET, 2)(X, Y)
    with pytest.raises(
        TypeError, match="input 1 must be a Tensor, or a tuple or list of them, but got float"
    ):
        ms.grad(NET, 1)(X, 3.0)


@pytest.mark.parametrize(
    ("options", "arguments", "expected"),
    [
        ({}, (X, Y), 6.0),
        ({"get_all": True}, (X, Y), (6.0, 4.0)),
        ({"get_by_list": True}, (X, Y), (6.0,)),
        ({"get_all": True, "get_by_list": True}, (X, Y), ((6.0, 4.0), (6.0,))),
        ({"sens_param": True}, (X, Y, Tensor(10.0)), 60.0),
        ({"get_all": True, "sens_param": True}, (X, Y, Tensor(10.0)), (60.0, 40.0)),
    ],
)
def test_grad_operation(options, arguments, expected):
    assert plain(ops.GradOperation(**options)(NET)(*arguments)) == expected


def test_grad_operation_of_a_function_needs_weights():
    operation = ops.GradOperation(get_by_list=True)
    with pytest.raises(ValueError, match="get_by_list of a function needs weights"):
        operation(lambda x: x)
    assert plain(operation(lambda x: x * NET.p, NET.p)(X)) == 2.0


def test_sens_of_another_shape():
    with pytest.raises(ValueError, match=r"must be of the output's shape \(\), but got \(2,\)"):
        ops.GradOperation(sens_param=True)(NET)(X, Y, Tensor([1.0, 2.0]))


def test_vjp():
    value, pull = ms.vjp(lambda x, y: x**3 + y, X, Y)
    assert plain(value) == 11.0
    assert plain(pull(Tensor(1.0))) == (12.0, 1.0)
    assert plain(pull(Tensor(2.0))) == (24.0, 2.0)
    _, pull = ms.vjp(NET, X, Y, weights=NET.trainable_params())
    assert plain(pull(Tensor(1.0))) == ((6.0, 4.0), (6.0,))
    value, pull, rest = ms.vjp(lambda x: (x * x, x + 1), X, has_aux=True)
    assert plain((value, pull(Tensor(1.0)), rest[0])) == (4.0, (4.0,), 3.0)


def test_jvp():
    assert plain(ms.jvp(lambda x, y: x * y, (X, Y), (Tensor(1.0), Tensor(10.0)))) == (6.0, 23.0)
    value, tangent, rest = ms.jvp(lambda x: (x * x, x + 1), X, Tensor(1.0), has_aux=True)
    assert plain((value, tangent, rest[0])) == (4.0, 4.0, 3.0)


def test_vmap():
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([1.0, 2.0, 3.0], np.float32)
    result = ops.vmap(lambda a, b: (a * b).astype(ms.float64).sum(), (0, None))(Tensor(x), Tensor(y))
    assert plain(result) == (x * y).sum(1).tolist()
    assert result.dtype == ms.float64


def test_pytorch_s_own_autograd():
    x = Tensor([1.0, 2.0])
    assert x.requires_grad_() is None
    (x * x).sum().backward()
    assert type(x.grad) is torch.Tensor
    assert x.grad.tolist() == [2.0, 4.0]
