"""Functions and primitives, against NumPy."""

import inspect

import numpy as np
import pytest

import polyop
import polyop.mindspore as ms
from polyop.mindspore import Parameter, Tensor, mint, ops

A = np.array([[0.5, -1.0, 2.0], [3.0, 0.25, -2.0]], np.float32)
B = np.array([[2.0, 2.0, -1.0], [1.0, 0.25, 4.0]], np.float32)
N = np.array([[1, 2, 3], [4, 5, 6]])
P = np.abs(A)


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


FUNCTIONS = [  # a call, what NumPy says
    ("add(a, b)", A + B),
    ("add(a, 2)", A + 2),
    ("add(2, a)", A + 2),
    ("sub(a, b)", A - B),
    ("mul(a, 3)", A * 3),
    ("mul(3, a)", A * 3),
    ("div(a, b)", A / B),
    ("div(n, 2)", N / 2),
    ("div(n, 2, rounding_mode='floor')", N // 2),
    ("floor_div(n, 2)", N // 2),
    ("floor_mod(a, 2)", np.mod(A, 2)),
    ("pow(a, 2)", A**2),
    ("maximum(a, b)", np.maximum(A, B)),
    ("minimum(a, 0.0)", np.minimum(A, 0)),
    ("equal(a, b)", A == B),
    ("not_equal(a, b)", A != B),
    ("greater(a, b)", A > B),
    ("less_equal(a, 0.5)", A <= 0.5),
    ("logical_and(a > 0, b > 0)", (A > 0) & (B > 0)),
    ("logical_not(a > 0)", A <= 0),
    ("abs(a)", P),
    ("exp(a)", np.exp(A)),
    ("log(p)", np.log(P)),
    ("sqrt(p)", np.sqrt(P)),
    ("rsqrt(p)", 1 / np.sqrt(P)),
    ("square(a)", A * A),
    ("neg(a)", -A),
    ("relu(a)", np.maximum(A, 0)),
    ("sigmoid(a)", 1 / (1 + np.exp(-A))),
    ("tanh(a)", np.tanh(A)),
    ("leaky_relu(a, 0.1)", np.where(A > 0, A, 0.1 * A)),
    ("softmax(a)", softmax(A, -1)),
    ("softmax(a, axis=0)", softmax(A, 0)),
    ("log_softmax(a, 1)", np.log(softmax(A, 1))),
    ("matmul(a, b.T)", A @ B.T),
    ("sum(a)", A.sum()),
    ("sum(a, 1, True)", A.sum(1, keepdims=True)),
    ("reduce_sum(a, (0, 1))", A.sum()),
    ("mean(a, 0)", A.mean(0)),
    ("mean(a, axis=1, keep_dims=True)", A.mean(1, keepdims=True)),
    ("prod(a, 0)", A.prod(0)),
    ("amax(a, 1)", A.max(1)),
    ("any(a > 2, 0)", (A > 2).any(0)),
    ("all(a > -5)", (A > -5).all()),
    ("max(a, 1)[0]", A.max(1)),
    ("max(a, 1)[1]", A.argmax(1)),
    ("max(a)[1]", np.int64(0)),
    ("leaky_relu(a)", np.where(A > 0, A, A * np.float32(0.2))),
    ("std(a, 1)", A.std(1)),
    ("argmin(a, 1)", A.argmin(1).astype(np.int32)),
    ("sort(a)[1]", A.argsort().astype(np.int32)),
    ("min(a)[0]", A.min()),
    ("argmax(a, 1)", A.argmax(1)),
    ("cumsum(a, 1)", A.cumsum(1)),
    ("reshape(a, (3, -1))", A.reshape(3, 2)),
    ("transpose(a, (1, 0))", A.T),
    ("expand_dims(a, 1)", A[:, None]),
    ("squeeze(expand_dims(a, 1))", A),
    ("squeeze(expand_dims(a, 1), 1)", A),
    ("broadcast_to(a, (2, 2, 3))", np.broadcast_to(A, (2, 2, 3))),
    ("tile(a, (2, 1))", np.tile(A, (2, 1))),
    ("concat((a, b), 1)", np.concatenate([A, B], 1)),
    ("cat([a, b])", np.concatenate([A, B])),
    ("stack((a, b), axis=-1)", np.stack([A, B], -1)),
    ("split(a, 1)[1]", A[1:]),
    ("split(a, [1, 2], axis=1)[1]", A[:, 1:]),
    ("unstack(a)[1]", A[1]),
    ("flatten(expand_dims(a, 1))", A),
    ("gather(a, Tensor([2, 0]), 1)", A[:, [2, 0]]),
    ("gather(a, Tensor([[0], [1]]), 0)", A[[[0], [1]]]),
    ("gather(a, Tensor([[2, 0], [1, 1]]), 1, 1)", np.take_along_axis(A, np.array([[2, 0], [1, 1]]), 1)),
    ("gather_elements(a, 1, Tensor([[2], [0]]))", A[[[0], [1]], [[2], [0]]]),
    ("one_hot(Tensor([1, 0]), 3, Tensor(1.0), Tensor(0.0))", np.eye(3, dtype=np.float32)[[1, 0]]),
    ("one_hot(Tensor([1, 0]), 3, Tensor(1.0), Tensor(0.0), 0)", np.eye(3, dtype=np.float32)[[1, 0]].T),
    ("select(a > 0, a, b)", np.where(A > 0, A, B)),
    ("where(a > 0, a, b)", np.where(A > 0, A, B)),
    ("masked_fill(a, a > 0, 7.0)", np.where(A > 0, 7, A).astype(np.float32)),
    ("clamp(a, -1, 1)", A.clip(-1, 1)),
    ("clip_by_value(a, -1, 1)", A.clip(-1, 1)),
    ("cast(a, ms.int32)", A.astype(np.int32)),
    ("cast(1.5, ms.int32)", np.int32(1)),
    ("addn([a, b, a])", A + B + A),
    ("zeros((2, 3))", np.zeros((2, 3), np.float32)),
    ("zeros(2, ms.int32)", np.zeros(2, np.int32)),
    ("ones((2,), dtype=ms.float16)", np.ones(2, np.float16)),
    ("zeros_like(a)", A * 0),
    ("ones_like(a, dtype=ms.int8)", np.ones((2, 3), np.int8)),
    ("full((2, 2), 3.5)", np.full((2, 2), 3)),  # Int64 by default
    ("full((2, 2), 3.5, dtype=ms.float32)", np.full((2, 2), 3.5, np.float32)),
    ("full_like(n, 4)", np.full_like(N, 4)),
    ("fill(ms.int32, (2,), 5)", np.full(2, 5, np.int32)),
    ("arange(5)", np.arange(5)),
    ("arange(1, 7, 2, dtype=ms.float32)", np.arange(1, 7, 2, dtype=np.float32)),
    ("eye(2, 3)", np.eye(2, 3, dtype=np.float32)),
    ("linspace(0, 1, 3)", np.linspace(0, 1, 3, dtype=np.float32)),
    ("stop_gradient(a)", A),
    ("depend(a, b)", A),
]

PRIMITIVES = [
    ("Add()(a, b)", A + B),
    ("Mul()(a, 2.0)", A * 2),
    ("RealDiv()(a, b)", A / B),
    ("Pow()(a, 2)", A**2),
    ("ReLU()(a)", np.maximum(A, 0)),
    ("MatMul(transpose_b=True)(a, b)", A @ B.T),
    ("MatMul(True)(a, b)", A.T @ B),
    ("BatchMatMul()(expand_dims(a, 0), expand_dims(b.T, 0))", (A @ B.T)[None]),
    ("Cast()(a, ms.float64)", A.astype(np.float64)),
    ("ReduceSum()(a)", A.sum()),
    ("ReduceSum(keep_dims=True)(a, 0)", A.sum(0, keepdims=True)),
    ("ReduceSum()(a, ())", A.sum()),
    ("ReduceMax()(a, 1)", A.max(1)),
    ("ReduceMean(True)(a, (0, 1))", A.mean(keepdims=True)),
    ("Softmax()(a)", softmax(A, -1)),
    ("Softmax(0)(a)", softmax(A, 0)),
    ("Concat(1)((a, b))", np.concatenate([A, B], 1)),
    ("Stack(axis=1)([a, b])", np.stack([A, B], 1)),
    ("Split(1, 3)(a)[2]", A[:, 2:]),
    ("Transpose()(a, (1, 0))", A.T),
    ("Reshape()(a, (6,))", A.reshape(6)),
    ("ExpandDims()(a, 0)", A[None]),
    ("Squeeze(0)(expand_dims(a, 0))", A),
    ("BroadcastTo((2, 2, 3))(a)", np.broadcast_to(A, (2, 2, 3))),
    ("Gather()(a, Tensor([1]), 0)", A[[1]]),
    ("Argmax()(a)", A.argmax(-1).astype(np.int32)),
    ("Argmax(axis=0, output_type=ms.int64)(a)", A.argmax(0)),
    ("ArgMaxWithValue(1)(a)[0]", A.argmax(1)),
    ("ArgMaxWithValue(1)(a)[1]", A.max(1)),
    ("Select()(a > 0, a, b)", np.where(A > 0, A, B)),
    ("ZerosLike()(a)", A * 0),
    ("Ones()((2,), ms.float32)", np.ones(2, np.float32)),
    ("Identity()(a)", A),
]

MINT = [
    ("add(a, b, alpha=2)", A + 2 * B),
    ("sum(a, dim=1, keepdim=True)", A.sum(1, keepdims=True)),
    ("max(a, 1)[0]", A.max(1)),
    ("transpose(a, 0, 1)", A.T),
    ("cat([a, b], dim=1)", np.concatenate([A, B], 1)),
    ("zeros((2,), dtype=ms.int32)", np.zeros(2, np.int32)),
    ("where(a > 0, a, b)", np.where(A > 0, A, B)),
    ("nn.functional.relu(a)", np.maximum(A, 0)),
]

TABLE = [(ops, *row) for row in (*FUNCTIONS, *PRIMITIVES)] + [(mint, *row) for row in MINT]


class Names(dict):
    """The names of a module and the inputs, for eval."""

    def __init__(self, module):
        super().__init__(a=Tensor(A), b=Tensor(B), n=Tensor(N), p=Tensor(P), ms=ms, Tensor=Tensor)
        self.module = module

    def __missing__(self, name):
        return getattr(self.module, name)


@pytest.mark.parametrize(
    ("module", "call", "expected"), TABLE, ids=[f"{m.__name__[17:]}.{c}" for m, c, _ in TABLE]
)
def test_value(module, call, expected):
    result = eval(call, {"__builtins__": {}}, Names(module))
    assert type(result) is Tensor
    assert np.allclose(result.asnumpy(), expected, rtol=1e-6, atol=1e-6)
    assert result.shape == np.shape(expected)
    assert result.asnumpy().dtype == np.asarray(expected).dtype or call == "div(n, 2)"


def test_results_that_are_no_tensors():
    x = Tensor(A)
    assert (ops.size(x), ops.shape(x), ops.rank(x)) == (6, (2, 3), 2)
    assert (ops.Size()(x), ops.Shape()(x)) == (6, (2, 3))
    assert ops.is_tensor(x)
    assert not ops.is_tensor(A)


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
        (mint, "summ", "'sum'"),
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


LOG = np.log(softmax(A, 1))


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


def test_losses_take_the_reduction_third():
    x, y = Tensor(A), Tensor(B)
    assert np.allclose(ops.mse_loss(x, y, "sum").asnumpy(), ((A - B) ** 2).sum())
    assert np.allclose(ops.l1_loss(x, y, "none").asnumpy(), abs(A - B))
    p, q = 1 / (1 + np.exp(-A)), np.abs(B) / 5
    expected = -(q * np.log(p) + (1 - q) * np.log(1 - p))
    result = ops.binary_cross_entropy(Tensor(p), Tensor(q), None, "none")
    assert np.allclose(result.asnumpy(), expected, atol=1e-5)
    result = ops.binary_cross_entropy_with_logits(x, Tensor(q), None, None, "sum")
    assert np.allclose(result.asnumpy(), expected.sum(), atol=1e-5)
    with pytest.raises(ValueError, match="mse_loss: reduction must be one of mean, sum, none, but got 'all'"):
        ops.mse_loss(x, y, "all")


def test_the_axes_of_a_grid():
    x, y = np.arange(2), np.arange(3)
    for form in ({}, {"indexing": "ij"}):
        result = ops.meshgrid(Tensor(x), Tensor(y), **form)
        for ours, expected in zip(result, np.meshgrid(x, y, **form), strict=True):
            assert np.array_equal(ours.asnumpy(), expected)


def test_the_modules_of_older_scripts():
    from polyop.mindspore.common import dtype as mstype
    from polyop.mindspore.common.api import jit
    from polyop.mindspore.common.parameter import Parameter as FromThere
    from polyop.mindspore.common.tensor import Tensor as TensorFromThere
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
