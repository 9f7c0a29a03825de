"""Functions and primitives, against NumPy."""

import inspect

import numpy as np
import pytest

import polyop
import polyop.mindspore as ms
from polyop.mindspore import Parameter, Tensor, ops

A = np.array([[0.5, -1.0, 2.0], [3.0, 0.25, -2.0]], np.float32)
B = np.array([[2.0, 2.0, -1.0], [1.0, 0.25, 4.0]], np.float32)


LOG = np.log(np.exp(A) / np.exp(A).sum(1, keepdims=True))
SAMPLES = [  # one call of each kind; the differential table has every name
    (ops, "add(2, a)", A + 2),
    (ops, "log_softmax(a, 1)", LOG),
    (ops, "max(a, 1)[1]", A.argmax(1)),
    (ops, "split(a, [1, 2], axis=1)[1]", A[:, 1:]),
    (ops, "full((2, 2), 3.5)", np.full((2, 2), 3)),  # Int64 by default
    (ops, "ones_like(a)", np.ones((2, 3), np.float32)),
    (ops, "zeros_like(a, dtype=ms.int64)", np.zeros((2, 3), np.int64)),
    (ops, "linspace(1, 2, 3)", np.array([1, 1.5, 2], np.float32)),
    (ops, "ReduceSum(keep_dims=True)(a, 0)", A.sum(0, keepdims=True)),
    (ops, "MatMul(transpose_b=True)(a, b)", A @ B.T),
]


class Names(dict):
    """The names of a module and the inputs, for eval."""

    def __init__(self, module):
        super().__init__(a=Tensor(A), b=Tensor(B), ms=ms, Tensor=Tensor)
        self.module = module

    def __missing__(self, name):
        return getattr(self.module, name)


@pytest.mark.parametrize(
    ("module", "call", "expected"), SAMPLES, ids=[f"{m.__name__[17:]}.{c}" for m, c, _ in SAMPLES]
)
def test_value(module, call, expected):
    result = eval(call, {"__builtins__": {}}, Names(module))
    assert type(result) is Tensor
    assert np.allclose(result.asnumpy(), expected, rtol=1e-6, atol=1e-6)
    assert result.shape == np.shape(expected)
    assert result.asnumpy().dtype == np.asarray(expected).dtype


def test_assignment():
    p = Parameter(Tensor([1.0, 2.0]))
    assert ops.assign(p, Tensor([3.0, 4.0])) is p
    ops.assign_add(p, Tensor([1.0, 1.0]))
    ops.AssignSub()(p, Tensor([0.0, 2.0]))
    assert p.asnumpy().tolist() == [4.0, 3.0]
    assert p.requires_grad


def test_random_numbers():
    ms.set_seed(3)
    first = [ops.standard_normal((2,)), ops.rand(2, 3), ops.randn((3,)), ops.randint(0, 5, (4,))]
    ms.set_seed(3)
    again = [ops.standard_normal((2,)), ops.rand(2, 3), ops.randn((3,)), ops.randint(0, 5, (4,))]
    for x, y in zip(first, again, strict=True):
        assert np.array_equal(x.asnumpy(), y.asnumpy())
    assert [x.shape for x in first] == [(2,), (2, 3), (3,), (4,)]


def test_primitives_as_objects(capsys):
    assert ops.ReduceSum(True).name == "ReduceSum"
    assert repr(ops.MatMul(transpose_b=True)) == "Prim[MatMul]<transpose_a=False, transpose_b=True>"
    relu = ops.ReLU()
    assert relu.add_prim_attr("primitive_target", "CPU") is relu
    assert relu.set_device("CPU") is relu
    with pytest.raises(NotImplementedError, match="ReLU: runs where its tensors are"):
        relu.set_device("Ascend")
    with pytest.raises(TypeError, match="Softmax: takes axis, but got"):
        ops.Softmax(dim=1)
    ops.Print()("value", Tensor(2.0))
    assert capsys.readouterr().out == "value 2.0\n"


@pytest.mark.parametrize(
    ("module", "name", "near"),
    [
        (ms, "Tensorr", "'Tensor'"),
        (ops, "Sigmoids", "'Sigmoid'"),
        (ops, "sigmoids", "'sigmoid'"),
        (ms.nn, "Dens", "'Dense'"),
        (ms.dtype, "flaot32", "'float32'"),
    ],
)
def test_a_name_that_is_not_here(module, name, near):
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'.*the nearest is .*{near}"):
        getattr(module, name)
    with pytest.raises(AttributeError, match="programs use, and MindSpore itself the rest$"):
        module.zzzzqqqq


@pytest.mark.parametrize(
    ("module", "name", "theirs"),
    [
        (ms.nn, "Linear", "nn.Dense"),
        (ms.nn, "Sequential", "nn.SequentialCell"),
        (ms.nn, "ModuleList", "nn.CellList"),
        (ms.nn, "Module", "nn.Cell"),
        (ms.nn, "functional", "ops, as in ops.relu"),
        (ms, "no_grad", "ops.stop_gradient"),
        (ms, "compile", "ms.jit"),
    ],
)
def test_a_name_of_pytorch(module, name, theirs):
    words = f"has no attribute '{name}', which is PyTorch's name; MindSpore's is {theirs}"
    with pytest.raises(AttributeError, match=words):
        getattr(module, name)
    assert not hasattr(module, name)


@pytest.mark.parametrize("kind", [np.uint8, np.int32, np.int64])
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("cross_entropy(a, t)", -LOG[[0, 1], [2, 0]].mean()),
        ("cross_entropy(a, t, reduction='sum')", -LOG[[0, 1], [2, 0]].sum()),
        ("cross_entropy(a, t, None, 0, 'sum')", -LOG[0, 2]),
        ("cross_entropy(a, t, Tensor([0.0, 1.0, 2.0]), -100, 'none')", [-2 * LOG[0, 2], 0]),
        ("nll_loss(a, t, None, -100, 'none')", -A[[0, 1], [2, 0]]),
    ],
)
def test_classes_of_any_integer(call, expected, kind):
    names = Names(ops)
    names["t"] = Tensor(np.array([2, 0], kind))
    result = eval(call, {"__builtins__": {}}, names)
    assert result.dtype == ms.float32
    assert np.allclose(result.asnumpy(), expected, atol=1e-6)


def test_a_reduction_that_is_none_of_three():
    with pytest.raises(ValueError, match="mse_loss: reduction must be one of mean, sum, none, but got 'all'"):
        ops.mse_loss(Tensor(A), Tensor(B), "all")


def test_the_modules_of_older_scripts():
    from polyop.mindspore.common.api import jit
    from polyop.mindspore.common.parameter import Parameter as FromThere
    from polyop.mindspore.common.tensor import Tensor as TensorFromThere

    from polyop.mindspore.common import dtype as mstype
    from polyop.mindspore.ops import composite as C
    from polyop.mindspore.ops import functional as F
    from polyop.mindspore.ops import operations as P

    assert P.Mul is ops.Mul
    assert F.mul is ops.mul
    assert C.GradOperation is ops.GradOperation
    assert mstype is ms.dtype is ms.mstype
    assert (jit, FromThere, TensorFromThere) == (ms.jit, Parameter, Tensor)


def test_custom_operators_are_those_of_polyop():
    assert issubclass(ops.Custom, polyop.Custom)
    assert ops.CustomRegOp is polyop.CustomRegOp
    assert ops.DataType is polyop.DataType
    assert ops.custom_info_register is polyop.custom_info_register
    assert ops.CustomOpBuilder.__name__ == "CustomOpBuilder"


def test_all_that_is_listed_is_there():
    for module in (ms, ops, ms.nn):
        for name in module.__all__:
            assert getattr(module, name) is not None
    assert all(inspect.getdoc(value) for value in {**ops.FUNCTIONS, **ops.PRIMITIVES}.values())


class TestCustom:
    """``ops.Custom`` on this layer's tensors."""

    def test_dtypes_in_infer_functions(self):
        def out_dtype(x):
            assert x == ms.float32
            return ms.float64

        op = ops.Custom(lambda x: x.astype(np.float64), lambda x: x, out_dtype, "pyfunc")
        made = op(Tensor(A))
        assert type(made) is Tensor
        assert made.dtype == ms.float64
        assert ops.Custom(lambda x: x * 2, (2, 3), ms.float32, "pyfunc")(Tensor(A)).dtype is ms.float32

    def test_several_outputs(self):
        def bprop(x, y, out, dout):
            assert [type(v) for v in (x, y, *out, *dout)] == [Tensor] * 6
            return dout[0] * out[1], dout[1] * 7

        both = ops.Custom(
            lambda x, y: (x + y, x - y), lambda x, y: (x, y), lambda x, y: (x, y), "pyfunc", bprop
        )
        total, difference = both(Tensor(A), Tensor(B))
        assert np.array_equal(total.asnumpy(), A + B)
        assert type(difference) is Tensor
        gradients = ms.grad(lambda x, y: both(x, y)[0], (0, 1))(Tensor(A), Tensor(B))
        assert np.allclose(gradients[0].asnumpy(), A - B)
        assert not gradients[1].asnumpy().any()

    def test_bprop_is_given_tensors(self):
        def bprop(x, out, dout):
            return ((x.astype(ms.float32) * 2 * dout).reshape(x.shape),)

        square = ops.Custom(lambda x: x * x, lambda x: x, lambda x: x, "pyfunc", bprop)
        p = Parameter(A)
        dx, dp = ms.grad(lambda x: square(x) * square(p), 0, p)(Tensor(B))
        assert np.allclose(dx.asnumpy(), 2 * B * A * A)
        assert np.allclose(dp.asnumpy(), 2 * A * B * B)

    def test_errors_are_polyop_s(self):
        with pytest.raises(ValueError, match="'func_type' must be one of"):
            ops.Custom(lambda x: x, lambda x: x, lambda x: x, "nope")
        with pytest.raises(TypeError, match="'bprop' must be of type function"):
            ops.Custom(lambda x: x, lambda x: x, lambda x: x, "pyfunc", bprop=3)

    def test_plain_tensors_stay_plain(self):
        import torch

        double = ops.Custom(lambda x: x * 2, lambda x: x, lambda x: x, "pyfunc")
        assert type(double(torch.ones(2))) is torch.Tensor

    def test_tensors_of_others_keep_their_class(self):
        import torch

        x, y = torch.ones(2, requires_grad=True), torch.ones(2)
        square = ops.Custom(
            lambda x: x * x, lambda x: x, lambda x: x, "pyfunc", lambda x, out, dout: (2 * x * dout,)
        )
        square(x).sum().backward()
        assert type(ops.flatten(y)) is Tensor
        assert type(torch.broadcast_tensors(y, Tensor([1.0, 2.0]))[0]) is Tensor
        torch.add(Tensor([1.0, 2.0]), 1, out=y)
        assert type(x) is type(y) is torch.Tensor
        assert x.grad.tolist() == [2.0, 2.0]
        assert y.tolist() == [2.0, 3.0]


def test_the_first_information_of_a_function_stays():
    def double(x):
        return x * 2

    def information(kind):
        registered = ops.CustomRegOp("double").input(0, "x").output(0, "y")
        return registered.dtype_format(kind, kind).target("CPU").get_op_info()

    ops.Custom(double, lambda x: x, lambda x: x, "pyfunc", reg_info=information(ops.DataType.F32_Default))
    with pytest.warns(polyop.FallbackWarning, match="is ignored, as in MindSpore: .* parts differ: rows"):
        again = ops.Custom(
            double, lambda x: x, lambda x: x, "pyfunc", reg_info=information(ops.DataType.F64_Default)
        )
    np.testing.assert_array_equal(again(Tensor(A)).asnumpy(), 2 * A)


def test_a_list_of_tensors_is_not_a_tensor():
    assert ops.stack(Tensor(A)).shape == (1, 2, 3)
    with pytest.raises(
        TypeError, match="concat: tensors must be a list or a tuple of tensors, but got a Tensor"
    ):
        ops.concat(Tensor(A))
    with pytest.raises(TypeError, match="addn: takes a list of tensors, at least one, but got Tensor"):
        ops.addn(Tensor(A))
    with pytest.raises(ValueError, match="addn: the tensors must have one shape and one dtype"):
        ops.addn([Tensor(A), Tensor(A[:1])])
