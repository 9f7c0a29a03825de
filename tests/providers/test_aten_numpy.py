"""PyTorch's operators on NumPy arrays: values and gradients as PyTorch gives them."""

import itertools
import warnings

import ml_dtypes
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from polyop.call.host import host_of  # noqa: E402
from polyop.core.dtypes import DTYPES  # noqa: E402
from polyop.core.errors import ArgumentTypeError, ArgumentValueError, HostError, KernelError  # noqa: E402
from polyop.core.spec import Spec  # noqa: E402
from polyop.hosts.torch.tensors import TORCH_DTYPES  # noqa: E402
from polyop.providers.aten import aten  # noqa: E402
from polyop.providers.aten.overloads import as_array  # noqa: E402

ops = torch.ops.aten
random = np.random.default_rng(0)


def normal(*shape, dtype=np.float64):
    return random.standard_normal(shape).astype(dtype)


X, Y, V = normal(3, 4), normal(3, 4), normal(4)
IMAGE, FILTER, BIAS = normal(1, 2, 5, 5), normal(3, 2, 3, 3), normal(3)
CONVOLUTION = ([1, 1], [0, 0], [1, 1], False, [0, 0], 1)

# name, arguments, keywords, PyTorch's own operator
CASES = [
    ("leaky_relu", (X, 0.3), {}, ops.leaky_relu.default),
    ("tanh", (X,), {}, ops.tanh.default),
    ("add", (X, Y), {"alpha": 2}, ops.add.Tensor),
    ("add", (X, V), {}, ops.add.Tensor),  # broadcast: the gradient has the input's shape
    ("pow.Tensor_Scalar", (X, 3), {}, ops.pow.Tensor_Scalar),
    ("clamp", (X, -0.5, None), {}, ops.clamp.default),
    ("sum", (X,), {}, ops.sum.default),
    ("sum.dim_IntList", (X, [0, 1]), {"keepdim": True}, ops.sum.dim_IntList),
    ("mean.dim", (X, [-1]), {}, ops.mean.dim),
    ("max.dim", (X, 1), {}, ops.max.dim),
    ("logsumexp", (X, [1]), {}, ops.logsumexp.default),
    ("matmul", (X, normal(4, 2)), {}, ops.matmul.default),
    ("addmm", (normal(3, 2), X, normal(4, 2)), {"beta": 0.5, "alpha": 2}, ops.addmm.default),
    ("linear", (X, normal(2, 4), None), {}, ops.linear.default),
    ("cat", ([X, Y], 1), {}, ops.cat.default),
    ("stack", ([X, Y],), {}, ops.stack.default),
    ("split", (X, 2), {}, ops.split.Tensor),
    ("unbind.int", (X,), {"dim": 1}, ops.unbind.int),
    ("native_layer_norm", (X, [4], V, None, 1e-5), {}, ops.native_layer_norm.default),
    ("embedding", (normal(5, 2), np.array([[0, 3], [3, 1]])), {}, ops.embedding.default),
    ("where.self", (X > 0, X, Y), {}, ops.where.self),
    ("convolution", (IMAGE, FILTER, BIAS, *CONVOLUTION), {}, ops.convolution.default),
    ("convolution", (IMAGE, FILTER, None, *CONVOLUTION), {}, ops.convolution.default),
    ("max_pool2d", (IMAGE, [2, 2]), {}, ops.max_pool2d.default),
    ("view", (X, [2, 6]), {}, ops.view.default),
    ("transpose.int", (X, 0, 1), {}, ops.transpose.int),
    ("expand", (V, [3, 4]), {}, ops.expand.default),
    ("index.Tensor", (X, [None, np.array([0, 2])]), {}, ops.index.Tensor),
    ("gather", (X, 1, np.array([[0], [1], [3]])), {}, ops.gather.default),
    ("mse_loss", (X, Y), {}, ops.mse_loss.default),
]


def converted(value):
    if isinstance(value, (list, tuple)):
        return [converted(item) for item in value]
    return torch.tensor(value) if isinstance(value, np.ndarray) else value


def flat(value):
    if isinstance(value, (list, tuple)):
        return [item for one in value for item in flat(one)]
    return [value]


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "theirs"), CASES, ids=lambda x: x if type(x) is str else ""
)
def test_values_and_gradients_are_those_of_pytorch(name, args, kwargs, theirs):
    inputs = converted(args)
    leaves = [t for t in flat(inputs) if isinstance(t, torch.Tensor)]
    for leaf in leaves:
        leaf.requires_grad_(leaf.is_floating_point())
    reference = flat(theirs(*inputs, **kwargs))
    smooth = [w for w in reference if w.requires_grad]
    seeds = [torch.full_like(w, i + 1.0) for i, w in enumerate(smooth)]
    expected = iter(torch.autograd.grad(smooth, [t for t in leaves if t.requires_grad], seeds))

    result, pull = aten(name).vjp(*args, **kwargs)
    results = flat(result)
    assert all(isinstance(value, np.ndarray) for value in results)
    for value, want in zip(results, reference, strict=True):
        np.testing.assert_allclose(value, want.detach().numpy(), rtol=1e-12)
        assert value.dtype == want.detach().numpy().dtype
    numbered = iter(range(1, len(reference) + 1))
    grads = [np.full(w.shape, float(next(numbered))) if w.requires_grad else None for w in reference]
    gradients = pull(grads if isinstance(result, (list, tuple)) else grads[0])
    assert len(gradients) == len(aten(name).schema.arguments)
    tensors = [(a, g) for a, g in zip(args, gradients, strict=False)]
    pairs = [
        pair for a, g in tensors for pair in (zip(a, g, strict=True) if isinstance(g, tuple) else [(a, g)])
    ]
    for argument, gradient in pairs:
        if isinstance(argument, np.ndarray) and argument.dtype.kind == "f":
            np.testing.assert_allclose(gradient, next(expected).numpy(), rtol=1e-10, atol=1e-14)
        else:
            assert gradient is None
    assert next(expected, None) is None


def test_a_call_is_the_same_as_with_a_gradient():
    np.testing.assert_allclose(aten("tanh")(X), np.tanh(X), rtol=1e-14)
    values, places = aten("max.dim")(X, 1, keepdim=True)
    np.testing.assert_array_equal(values, X.max(1, keepdims=True))
    np.testing.assert_array_equal(places, X.argmax(1, keepdims=True))
    assert [part.shape for part in aten("split")(X, 2)] == [(2, 4), (1, 4)]


def test_dtypes_are_given_in_any_spelling():
    for kind in ("float64", np.float64, np.dtype("float64"), torch.float64, "double"):
        result = aten("softmax.int")(X.astype(np.float32), 1, kind)
        assert result.dtype == np.float64
    np.testing.assert_allclose(result.sum(1), 1, rtol=1e-12)
    result = aten("zeros_like")(X, dtype="int32", layout=torch.strided, device="cpu")
    assert (result.dtype, result.tolist()) == (np.int32, [[0] * 4] * 3)
    assert aten("contiguous")(X, memory_format=torch.contiguous_format).tolist() == X.tolist()


def test_dtypes_that_numpy_lacks_go_by_their_bytes():
    x = np.array([-2.0, 3.0], ml_dtypes.bfloat16)
    out, pull = aten("leaky_relu").vjp(x, 0.5)
    assert (out.dtype, out.tolist()) == (x.dtype, [-1.0, 3.0])
    (dx, none) = pull(np.ones(2, ml_dtypes.bfloat16))
    assert (dx.dtype, dx.tolist(), none) == (x.dtype, [0.5, 1.0], None)
    for dtype in ("bool", "uint16", "complex64", "float16", "float8_e5m2"):
        kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
        assert aten("clone")(np.ones(2, kind)).dtype == kind


def test_complex_results_have_their_conjugate_resolved():
    z = np.array([1 + 2j, 3 - 1j])
    np.testing.assert_array_equal(aten("conj")(z), z.conj())
    np.testing.assert_array_equal(aten("view_as_real")(z), np.stack([z.real, z.imag], -1))


def test_a_view_is_a_new_array():
    x = X.copy()
    for view in (aten("view")(x, [4, 3]), aten("contiguous")(x), aten("detach")(x), *aten("split")(x, 1)):
        assert not np.shares_memory(view, x)
        view[...] = 0
    np.testing.assert_array_equal(x, X)
    first, second = aten("unbind.int")(aten("expand")(V, [2, 4]))
    first[0] = 7
    assert second[0] == V[0]


def test_in_place_operators_write_the_array():
    x = X.copy()
    assert aten("add_.Tensor")(x, Y, alpha=2) is x
    np.testing.assert_allclose(x, X + 2 * Y, rtol=1e-14)
    strided = np.zeros((4, 6))[::2, ::3]
    assert aten("fill_.Scalar")(strided, 2.5) is strided
    assert strided.tolist() == [[2.5, 2.5]] * 2
    a, b = np.ones(2), np.ones(3)
    assert aten("_foreach_mul_.Scalar")([a, b], 3) is None
    assert (a.tolist(), b.tolist()) == ([3, 3], [3, 3, 3])
    with pytest.raises(ArgumentValueError, match="argument self: is written in place, but got a read-only"):
        aten("zero_")(np.broadcast_to(np.ones(1), (2,)))


def test_out_arguments_are_written_and_not_resized():
    out = np.empty((3, 4))
    assert aten("add.out")(X, Y, out=out) is out
    np.testing.assert_array_equal(out, X + Y)
    values, places = np.empty(3), np.empty(3, np.int64)
    assert aten("max.dim_max")(X, 1, max=values, max_values=places)[1] is places
    np.testing.assert_array_equal(values, X.max(1))
    np.testing.assert_array_equal(places, X.argmax(1))
    for shape in ((4, 4), (2,), (0,)):
        out = np.full(shape, 7.0)
        with pytest.raises(ArgumentValueError, match=r"argument out: must have the result's shape \(3, 4\)"):
            aten("add.out")(X, Y, out=out)
        assert (out == 7).all()


def test_inputs_of_any_layout_are_left_alone():
    x = X.T[::-1]
    np.testing.assert_array_equal(aten("abs")(x), np.abs(x))
    fixed = np.broadcast_to(V, (3, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(aten("abs")(fixed), np.abs(fixed))
    assert aten("abs")(np.empty((0, 3))).shape == (0, 3)
    assert aten("abs")(np.float32(-2)) == np.float32(2)
    assert aten("abs")(x.astype(">f8")).tolist() == np.abs(x).tolist()


def test_a_number_stands_for_a_list_of_a_fixed_size():
    ours = aten("avg_pool2d")
    assert str(ours).count("int[] kernel_size") == 1
    np.testing.assert_array_equal(ours(IMAGE, 2), ours(IMAGE, [2, 2]))
    np.testing.assert_array_equal(aten("sum.dim_IntList")(X, 1), X.sum(1)[()])
    with pytest.raises(
        KernelError, match="avg_pool2d: PyTorch raised RuntimeError: .*kernel_size must either"
    ):
        ours(IMAGE, [2, 2, 2])


NUMBERS = (True, 3, 0.1, 2.5, 1 + 2j)
KINDS = [row for row in DTYPES if row.name in TORCH_DTYPES]
PROMOTED = [
    row for row in KINDS if "float8" not in row.name and row.name not in ("uint16", "uint32", "uint64")
]
"""The dtypes for which PyTorch's rule is complete."""
NEVER_COMPLEX = {row.name for row in KINDS} - {row.name for row in PROMOTED} | {"float16"}
"""The dtypes that give no dtype of NumPy's beside a complex number."""


@pytest.mark.parametrize("shape", [(3,), ()], ids=["dimensions", "none"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_number_stands_for_a_tensor_as_in_pytorch(kind, shape):
    where = aten("where.self", batch="elementwise")  # with batch= the overload for numbers is not taken
    x = np.ones(shape, kind.numpy)
    theirs = torch.ones(shape, dtype=TORCH_DTYPES[kind.name])
    condition = np.zeros((3,), bool)
    for number in NUMBERS:
        if isinstance(number, complex) and kind.name in NEVER_COMPLEX:
            continue
        want = torch.where(torch.zeros(3, dtype=torch.bool), theirs, number)
        got = where(condition, x, number)
        assert got.dtype.name == str(want.dtype).removeprefix("torch."), number
        kept = torch.complex128 if want.is_complex() else torch.float64
        np.testing.assert_array_equal(got.astype(str(kept)[6:]), want.to(kept).numpy(), str(number))


@pytest.mark.parametrize(("number", "kind"), [(300, "int8"), (-1, "uint8"), (1e300, "float32")])
@pytest.mark.parametrize("shape", [(3,), ()], ids=["dimensions", "none"])
def test_a_number_that_is_too_large_becomes_what_it_becomes_in_pytorch(number, kind, shape):
    x = np.ones(shape, kind)
    got = aten("add.Tensor", batch="elementwise")(x, number)
    want = torch.add(torch.from_numpy(x), number)
    np.testing.assert_array_equal(got, want.numpy(), strict=True)


@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_a_number_beside_two_tensors_has_the_dtype_of_pytorchs_rule():
    from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND as RULE
    from torch._prims_common import elementwise_dtypes

    places = [Spec(shape, kind) for kind in PROMOTED for shape in ((2,), ())]
    for first, second, number in itertools.product(places, places, (True, 3, 0.5, 2j)):
        both = [torch.empty(x.shape, dtype=TORCH_DTYPES[x.dtype.name]) for x in (first, second)]
        array = as_array(host_of(X), number, [first, second])
        third = torch.empty(array.shape, dtype=TORCH_DTYPES[host_of(X).spec(array).dtype.name])
        _, want = elementwise_dtypes(*both, number, type_promotion_kind=RULE.DEFAULT)
        _, got = elementwise_dtypes(*both, third, type_promotion_kind=RULE.DEFAULT)
        assert want in (got, torch.complex32), (first, second, number)


def test_a_number_for_a_tensor_keeps_its_digits():
    x = np.array([0.05, 1.0])
    assert aten("minimum")(np.array([np.inf]), 1e300) == 1e300
    assert aten("maximum")(np.array([1.0]), 16777217.0) == 16777217
    np.testing.assert_allclose(aten("logaddexp")(x, 0.1), np.logaddexp(x, 0.1), rtol=1e-15)
    dx = aten("hypot").vjp(x, 0.1)[1](np.ones(2))[0]
    np.testing.assert_allclose(dx, x / np.hypot(x, 0.1), rtol=1e-15)


@pytest.mark.parametrize("kind", ["int8", "float16", "float64"])
def test_an_integer_for_a_tensor_may_be_an_index(kind):
    assert aten("index_select")(np.arange(5).astype(kind), 0, 2) == 2


def test_statistics_that_a_normalisation_writes_must_be_writeable():
    x, mean, var = normal(8, 3), np.zeros(3), np.ones(3)
    norm = aten("batch_norm")
    norm(x, None, None, mean, var, True, 1.0, 1e-5, False)
    np.testing.assert_allclose(mean, x.mean(0), rtol=1e-12)
    mean.flags.writeable = False
    norm(x, None, None, mean, var, False, 1.0, 1e-5, False)  # not in training: nothing is written
    with pytest.raises(ArgumentValueError, match="running_mean: was written, .* got a read-only array"):
        norm(x[:4], None, None, mean, var, True, 1.0, 1e-5, False)
    _, pull = norm.vjp(x, None, None, mean, var, False, 1.0, 1e-5, False)
    np.testing.assert_allclose(
        pull(np.ones((8, 3)))[0], 1 / np.sqrt(var + 1e-5) * np.ones((8, 3)), rtol=1e-12
    )


def test_shapes_that_depend_on_data_work_eagerly():
    np.testing.assert_array_equal(aten("nonzero")(np.array([0, 3, 5])), [[1], [2]])
    np.testing.assert_array_equal(aten("masked_select")(X, X > 0), X[X > 0])
    dx = aten("masked_select").vjp(X, X > 0)[1](np.ones((X > 0).sum()))[0]
    np.testing.assert_array_equal(dx, X > 0)


def test_random_operators_draw_from_pytorch():
    torch.manual_seed(3)
    dropped = aten("dropout")(np.ones(1000), 0.25, True)
    torch.manual_seed(3)
    np.testing.assert_array_equal(dropped, torch.dropout(torch.ones(1000, dtype=torch.double), 0.25, True))
    with pytest.raises(ArgumentTypeError, match=r"argument generator: must be Generator\?"):
        aten("bernoulli")(X * 0, generator=torch.Generator())


def test_calls_that_cannot_be_made():
    with pytest.raises(HostError, match="other is a tensor of torch, and self one of numpy"):
        aten("add")(X, torch.ones(4))
    with pytest.raises(ArgumentTypeError, match="argument other: must be a tensor of"):
        aten("add")(X, "2.0")
    with pytest.raises(ArgumentTypeError, match=r"argument dtype: must be ScalarType\?, but got 'float99'"):
        aten("sum")(X, dtype="float99")
    with pytest.raises(KernelError, match="aten::mm: PyTorch raised RuntimeError: .*cannot be multiplied"):
        aten("mm")(X, X)
    with pytest.raises(KernelError, match="gave a result that is no array, but got .*sparse"):
        aten("to_sparse")(X)
    with pytest.raises(
        HostError, match=r"its schema has none\n.*\n  pass host=\"jax\" .*, or like= an array"
    ):
        aten("zeros")([2])
    assert aten("zeros").torch([2]).tolist() == [0, 0]
