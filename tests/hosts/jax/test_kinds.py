"""Every kind of kernel, called from JAX eagerly and inside jit, compared with the NumPy host or NumPy."""

import pathlib

import ml_dtypes
import numpy as np
import pytest

import polyop
from polyop import Custom, CustomRegOp, DataType
from polyop.build import build
from polyop.core.dtypes import DTYPES

jax = pytest.importorskip("jax", reason="JAX is not installed")
import jax.numpy as jnp  # noqa: E402

SOURCES = pathlib.Path(__file__).parents[2] / "sources"
X = np.array([[1, -2, 3], [4, 5, -6]], np.float32)
modes = pytest.mark.parametrize("mode", [lambda f: f, jax.jit], ids=["eager", "jit"])


def same(result, expected):
    """Check that a JAX array has the dtype, shape and values of an array."""
    assert isinstance(result, jax.Array), type(result)
    expected = np.asarray(expected)
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(np.asarray(result), expected)


@modes
@pytest.mark.parametrize("x", [X, X[:0], np.zeros((0, 3), np.float32), np.float32(3), np.zeros((2, 0), np.float32)], ids=str)  # fmt: skip
def test_shapes(square, mode, x):
    same(mode(square)(jnp.asarray(x)), np.asarray(x) ** 2)


@modes
@pytest.mark.parametrize("row", [row for row in DTYPES if row.xla >= 0], ids=str)
def test_every_dtype(kernels, mode, row):
    op = polyop.operator(f"jax_kinds::copy_{row}_{mode.__name__.strip('<>')}(Tensor x) -> Tensor", kernels("copy"), infer="x")  # fmt: skip
    x = np.array([0, 1, 1, 0, 1], np.float32).astype(row.numpy)
    result = mode(op)(jnp.asarray(x))
    assert result.dtype == row.numpy
    np.testing.assert_array_equal(np.asarray(result).view(np.uint8), x.view(np.uint8))


@modes
def test_several_outputs_optional_inputs_and_lists(kernels, mode):
    tag = mode.__name__.strip("<>")
    x = jnp.asarray(X)
    both = polyop.operator(
        f"jax_kinds::both_{tag}(Tensor x, Tensor y) -> (Tensor, Tensor)", kernels("sum_and_difference"), infer="x"
    )  # fmt: skip
    total, difference = mode(both)(x, x)
    same(total, 2 * X)
    same(difference, 0 * X)
    maybe = polyop.operator(
        f"jax_kinds::maybe_{tag}(Tensor x, Tensor? y=None) -> Tensor", kernels("add_optional"), infer="x"
    )
    same(mode(maybe)(x), X)
    same(mode(maybe)(x, x), 2 * X)
    same(mode(lambda x: maybe(x, y=None))(x), X)
    every = polyop.operator(
        f"jax_kinds::every_{tag}(Tensor[] xs) -> Tensor", kernels("add_all"), infer=lambda xs: xs[0]
    )
    same(mode(lambda *xs: every(list(xs)))(x, x, x), 3 * X)
    same(mode(lambda x: every((x,)))(x), X)
    same(mode(lambda x: every([x] * 40))(x), 40 * X)


ATTRIBUTES = [
    # type, value, kind (1 bool, 2 int, 3 float, 4 string, 0 none), depth, rows, the values
    ("int", -7, 2, 0, [], [-7]),
    ("int", 2**52, 2, 0, [], [2**52]),
    ("SymInt", 5, 2, 0, [], [5]),
    ("float", 0.1, 3, 0, [], [0.1]),
    ("float", -0.0, 3, 0, [], [-0.0]),
    ("float", float("nan"), 3, 0, [], [float("nan")]),
    ("float", float("inf"), 3, 0, [], [float("inf")]),
    ("float", -float("inf"), 3, 0, [], [-float("inf")]),
    ("bool", True, 1, 0, [], [1]),
    ("bool", False, 1, 0, [], [0]),
    ("str", 'a "ä"\\\n', 4, 0, [], list('a "ä"\\\n'.encode())),
    ("str", "", 4, 0, [], []),
    ("int[]", [1, -2, 3], 2, 1, [], [1, -2, 3]),
    ("int[2]", 4, 2, 1, [], [4, 4]),
    ("float[]", [1.5, float("inf")], 3, 1, [], [1.5, float("inf")]),
    ("bool[]", [True, False], 1, 1, [], [1, 0]),
    ("str[]", ["ab", "c"], 4, 1, [], list(b"abc")),
    ("int[][]", [[1], [], [2, 3]], 2, 2, [1, 0, 2], [1, 2, 3]),
    ("int[]", [], 0, 1, [], []),
    ("Scalar", 1, 2, 0, [], [1]),
    ("Scalar", 1.0, 3, 0, [], [1.0]),
    ("Scalar", True, 1, 0, [], [1]),
    ("ScalarType", "float32", 4, 0, [], list(b"float32")),
    ("int?", None, 0, 0, [], []),
    ("int?", 3, 2, 0, [], [3]),
    ("float[]?", None, 0, 0, [], []),
]


@pytest.fixture(scope="session")
def attribute_operator():
    """An operator per type of attribute, which returns the values that its kernel reads."""
    kernel, operators = polyop.source(SOURCES / "attributes.c", function="seen"), {}

    def operator_for(kind):
        if kind not in operators:
            schema = f"jax_kinds::seen_{len(operators)}(Tensor x, {kind} v) -> Tensor"
            operators[kind] = polyop.operator(
                schema, kernel, infer=lambda x, v: polyop.Spec((64,), "float64")
            )
        return operators[kind]

    return operator_for


@modes
@pytest.mark.parametrize(
    ("kind", "value", "tag", "depth", "rows", "values"), ATTRIBUTES, ids=lambda v: ascii(v)
)
def test_attributes(attribute_operator, mode, kind, value, tag, depth, rows, values):
    x = jnp.zeros(1)
    result = np.asarray(mode(lambda x: attribute_operator(kind)(x, value))(x))
    if value is None or value == []:  # how the contract passes None and [] is not compared
        same(jnp.asarray(result), attribute_operator(kind)(np.zeros(1), value))
        return
    count = len(value) if isinstance(value, list) and depth == 1 else len(values) if tag != 4 else 1
    expected = [tag, depth, count, len(rows), *rows, *values]
    np.testing.assert_array_equal(result, [*expected, *[0] * (64 - len(expected))])
    np.testing.assert_array_equal(np.signbit(result[: len(expected)]), np.signbit(expected))


def test_equal_attributes_of_different_types_stay_apart(attribute_operator):
    x = jnp.zeros(1)
    kinds = [int(attribute_operator("Scalar")(x, value)[0]) for value in (1, 1.0, True, 1, 1.0, True)]
    assert kinds == [2, 3, 1, 2, 3, 1]
    signs = [bool(np.signbit(attribute_operator("float")(x, value)[4])) for value in (0.0, -0.0, 0.0)]
    assert signs == [False, True, False]


@modes
def test_defaults_and_keyword_only_attributes(kernels, mode):
    tag = mode.__name__.strip("<>")
    op = polyop.operator(
        f"jax_kinds::kw_{tag}(Tensor x, *, float a=2.0) -> Tensor", kernels("cube"), infer="x"
    )
    x = jnp.arange(3.0)
    same(mode(op)(x), 2 * np.arange(3.0) ** 3)
    same(mode(lambda x: op(x, a=0.5))(x), 0.5 * np.arange(3.0) ** 3)
    with pytest.raises(TypeError, match="takes 1 positional argument "):
        mode(lambda x: op(x, 0.5))(x)


@modes
def test_prebuilt_library_with_information(tmp_path, mode):
    made = build([SOURCES / "add.cc"], output=tmp_path / "add.so")
    info = CustomRegOp().input(0, "x").input(1, "y").output(0, "z").dtype_format(*[DataType.None_None] * 3)
    op = Custom(
        f"{made}:CustomAdd", lambda x, y: x, lambda x, y: x, "aot", None, info.target("CPU").get_op_info()
    )
    same(mode(op)(jnp.asarray(X), jnp.asarray(X)), 2 * X)
    one = Custom(f"{made}:CustomAdd", ((2, 3),), (polyop.dtype("float32"),), "aot")
    result = mode(one)(jnp.asarray(X), jnp.asarray(X))
    assert isinstance(result, tuple) and len(result) == 1  # declared as a tuple of one
    same(result[0], 2 * X)


@modes
def test_source_with_state_attributes_and_a_workspace(mode):
    op = polyop.operator(
        f"jax_kinds::with_attr_{mode.__name__.strip('<>')}(Tensor x, Tensor y, float scale, float[] paddings) -> Tensor",
        f"{SOURCES / 'add_with_attr.cc'}:AddWithAttr",
        infer="x",
    )
    result = mode(lambda x, y: op(x, y, 0.7, [0.5, 1.0]))(jnp.asarray(X), jnp.asarray(X))
    np.testing.assert_allclose(result, X + 1.4 * X + 1.5, rtol=1e-6)


@pytest.mark.slow(2)
@modes
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bfloat16", "float16"])
def test_loop_kernel(mode, dtype):
    @polyop.kernel
    def outer(a, b):
        c = output_tensor((a.shape[0], b.shape[0]), a.dtype)  # noqa: F821
        for i in range(a.shape[0]):
            for j in range(b.shape[0]):
                c[i, j] = a[i] * b[j]
        return c

    op = Custom(outer, func_type="hybrid")
    a, b = jnp.arange(3).astype(dtype), jnp.arange(4).astype(dtype)
    same(mode(op)(a, b), np.asarray(a)[:, None] * np.asarray(b))


@modes
def test_custom_pyfunc(mode):
    op = Custom(lambda x, y: (x + y, x.max()), lambda x, y: (x, ()), lambda x, y: (x, x), "pyfunc")
    total, top = mode(op)(jnp.asarray(X), jnp.asarray(X))
    same(total, 2 * X)
    same(top, X.max())


@modes
def test_python_kernel_and_its_read_only_inputs(mode):
    tag = mode.__name__.strip("<>")

    def spoil(x):
        x += 1
        return x

    op = polyop.operator(f"jax_kinds::spoil_{tag}(Tensor x) -> Tensor", spoil, infer="x")
    with pytest.raises(Exception, match="read-only"):
        mode(op)(jnp.asarray(X)).block_until_ready()
    twice = polyop.operator(f"jax_kinds::twice_{tag}(Tensor x) -> Tensor", lambda x: 2 * x, infer="x")
    same(mode(twice)(jnp.asarray(X)), 2 * X)
    same(mode(twice)(jnp.asarray(X, ml_dtypes.bfloat16)), 2 * X.astype(ml_dtypes.bfloat16))


@modes
def test_aten_by_name(mode):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    leaky = polyop.aten("leaky_relu")
    expected = torch.nn.functional.leaky_relu(torch.from_numpy(X), 0.5).numpy()
    same(mode(lambda x: leaky(x, 0.5))(jnp.asarray(X)), expected)
    values, index = mode(lambda x: polyop.aten("sort")(x, 1))(jnp.asarray(X))
    same(values, np.sort(X, 1))
    same(index, np.argsort(X, 1))
    parts = mode(lambda x: polyop.aten("split.Tensor")(x, 1))(jnp.asarray(X))
    assert isinstance(parts, list)
    same(parts[1], X[1:])
    result = jax.grad(lambda x: leaky(x, 0.5).sum())(jnp.asarray(X))
    same(result, np.where(X > 0, 1, 0.5).astype(np.float32))


@modes
def test_aclnn_by_name(mode):
    op = Custom(
        "aclnnMul", lambda x, y: x, lambda x, y: x, "aot", bprop=lambda x, y, out, dout: (y * dout, x * dout)
    )
    same(mode(op)(jnp.asarray(X), jnp.asarray(X + 1)), X * (X + 1))
    same(mode(jax.grad(lambda x: op(x, x).sum()))(jnp.asarray(X)), 2 * X)
