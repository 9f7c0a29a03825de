"""NumPy arrays and numbers beside JAX's arrays: every kind of operator takes them, as JAX's functions do."""

import pathlib

import numpy as np
import pytest

import polyop
from polyop import Custom
from polyop.core.errors import ArgumentTypeError, ArgumentValueError, HostError
from polyop.define.module.builder import CustomOpBuilder

jax = pytest.importorskip("jax", reason="JAX is not installed")
import jax.numpy as jnp  # noqa: E402

SOURCES = pathlib.Path(__file__).parents[2] / "sources"
MODULE = str(SOURCES / "module_gradients.cpp")
DIFFERENTIABLE = {"gradient": lambda x, y, out, dout: (dout, dout), "batch": "elementwise"}
X = np.arange(4.0, dtype=np.float32)
N = np.array([1, -2, 3, 5], np.float32)
KINDS = ("C", "Python", "loop", "Custom", "module", "aten")


@polyop.kernel
def add_rows(x, y):
    out = output_tensor(x.shape, x.dtype)  # noqa: F821
    for i in range(x.shape[0]):
        out[i] = x[i] + y[i]
    return out


@polyop.kernel
def times(x, factor):
    out = output_tensor(x.shape, x.dtype)  # noqa: F821
    for i in range(x.shape[0]):
        out[i] = x[i] * factor[()]
    return out


@pytest.fixture(scope="module")
def sums(kernels):
    """Return a function from a kind of operator to one that adds, and skips without PyTorch."""

    def make(kind):
        if kind == "C":
            rule = lambda x, y, out, dout: (dout[0] + dout[1], dout[0] - dout[1])  # noqa: E731
            schema = "jax_beside::in_c(Tensor x, Tensor y) -> (Tensor, Tensor)"
            both = polyop.operator(
                schema, kernels("sum_and_difference"), infer="x", gradient=rule, batch="elementwise"
            )
            return lambda x, y: both(x, y)[0]
        if kind == "Python":
            schema = "jax_beside::in_python(Tensor x, Tensor y) -> Tensor"
            return polyop.operator(schema, np.add, infer="x", **DIFFERENTIABLE)
        if kind == "Custom":
            bprop = lambda x, y, out, dout: (dout, dout)  # noqa: E731
            return Custom(np.add, lambda x, y: x, lambda x, y: x, "pyfunc", bprop)
        if kind == "module":
            both = CustomOpBuilder("jax_beside", [MODULE], backend="CPU").load().both
            return lambda x, y: both(x, y)[1]
        if kind == "aten":
            pytest.importorskip("torch", reason="PyTorch is not installed")
            return polyop.aten("add")
        return add_rows

    made = {}
    return lambda kind: made.setdefault(kind, None) or made.update({kind: make(kind)}) or made[kind]


CALLS = [
    ("eager", lambda f, x, n: f(x, n)),
    ("NumPy first", lambda f, x, n: f(n, x)),
    ("jit", lambda f, x, n: jax.jit(lambda a: f(a, n))(x)),
    ("jit of NumPy's first", lambda f, x, n: jax.jit(lambda a: f(n, a))(x)),
    ("grad", lambda f, x, n: jax.grad(lambda a: (f(a, n) * a).sum())(x)),
    ("grad of jit", lambda f, x, n: jax.jit(jax.grad(lambda a: (f(n, a) * a).sum()))(x)),
    ("jvp", lambda f, x, n: jax.jvp(lambda a: f(a, n), (x,), (x,))),
    ("vmap", lambda f, x, n: jax.vmap(f, (0, None))(np.stack([n, n]), n)),
    ("vmap of a constant", lambda f, x, n: jax.vmap(lambda a: f(a, n))(jnp.stack([x, x]))),
    ("scan", lambda f, x, n: jax.lax.scan(lambda c, _: (f(c, n), None), x, None, length=3)[0]),
    ("a view", lambda f, x, n: f(x, np.repeat(n, 2)[::2])),
    ("in the other order of bytes", lambda f, x, n: f(x, n.astype(n.dtype.newbyteorder()))),
]


@pytest.mark.filterwarnings("ignore::polyop.FallbackWarning")
@pytest.mark.slow(4)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "call"), CALLS, ids=[name for name, _ in CALLS])
def test_numpy_arrays_beside(sums, kind, name, call):
    del name
    dtype = np.float64 if kind == "module" else np.float32
    x, n = jnp.asarray(X.astype(dtype)), N.astype(dtype)
    native = lambda a: a.astype(dtype) if isinstance(a, np.ndarray) else a  # noqa: E731 - as JAX demands
    own = call(lambda a, b: jnp.add(native(a), native(b)), x, n)
    for found, expected in zip(jax.tree.leaves(call(sums(kind), x, n)), jax.tree.leaves(own), strict=True):
        assert isinstance(found, jax.Array), type(found)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-6)


NUMBERS = [2.5, 3, True, np.float64(2.5), np.float32(2.5), np.int64(3), np.bool_(True), np.array(2.5)]


@pytest.mark.slow(3)
@pytest.mark.parametrize("wide", [True, False], ids=["64 bits", "32 bits"])
@pytest.mark.parametrize("row", range(len(NUMBERS)), ids=lambda i: repr(NUMBERS[i]))
def test_numbers_are_tensors_without_dimensions(row, wide):
    """Their dtype is that of ``jnp.asarray``, which is of 32 bits in JAX's default mode."""
    number, seen = NUMBERS[row], set()

    def kernel(x, factor):
        seen.add((factor.dtype, factor.shape))
        return (x * factor).astype(x.dtype)

    op = polyop.operator(
        f"jax_beside::number_{row}_{wide}(Tensor x, Tensor factor) -> Tensor", kernel, infer="x"
    )
    jax.config.update("jax_enable_x64", wide)
    x = jnp.asarray(X)
    expected = (jnp.asarray(number).dtype, ())
    for mode in (lambda f: f, jax.jit):
        np.testing.assert_allclose(mode(lambda a: op(a, number))(x), X * number)
        np.testing.assert_allclose(mode(lambda a: times(a, number))(x), X * number)
        np.testing.assert_allclose(mode(op)(x, number), X * number)
    assert seen == {expected}


@pytest.mark.parametrize(
    ("given", "taken"), [("float64", "float32"), ("int64", "int32"), ("uint64", "uint32"), ("complex128", "complex64")]
)  # fmt: skip
def test_wide_arrays_in_the_default_mode(given, taken):
    jax.config.update("jax_enable_x64", False)
    copy = polyop.operator(
        f"jax_beside::second_{given}(Tensor x, Tensor y) -> Tensor", lambda x, y: y.copy(), infer="y"
    )
    n = np.array([1, 2**32 + 3], given)
    found = copy(jnp.asarray(X), n)
    assert found.dtype == taken == jnp.asarray(n).dtype
    np.testing.assert_array_equal(found, jnp.asarray(n))


def test_the_values_are_those_of_the_call(sums):
    """JAX's array is a copy: the program may run, and the gradient be taken, when the array has changed."""
    times_rows = polyop.operator(
        "jax_beside::times(Tensor x, Tensor y) -> Tensor",
        np.multiply,
        infer="x",
        gradient=lambda x, y, out, dout: (dout * y, dout * x),
    )
    n = np.ones(1 << 16, np.float32)
    out, pull = jax.vjp(lambda a: times_rows(a, n), jnp.ones(1 << 16, np.float32))
    n[:] = 7
    np.testing.assert_array_equal(out, np.ones(1 << 16))
    np.testing.assert_array_equal(pull(out)[0], np.ones(1 << 16))


def test_the_gradients_of_op_vjp_are_of_jax_arrays():
    out, pull = add_rows.vjp(jnp.asarray(X), N)
    dx, dn = pull(out)
    np.testing.assert_array_equal(dx, X + N)
    assert dn is None


def test_numpy_alone_is_a_call_of_numpy():
    constants = []

    def program(x):
        constants.append(add_rows(N, N))
        return x + constants[0]

    np.testing.assert_array_equal(jax.jit(program)(jnp.asarray(X)), X + 2 * N)
    assert type(constants[0]) is np.ndarray


@pytest.mark.parametrize("mode", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_what_stays_an_error(mode):
    def refused(error, message, op, *arguments):
        with pytest.raises(error, match=message):
            mode(lambda x: op(*(x if a is X else a for a in arguments)))(jnp.asarray(X))

    assign = polyop.operator(
        f"jax_beside::assign_{id(mode)}(Tensor(a!) x, Tensor y) -> ()", lambda x, y: np.copyto(x, y)
    )
    lost = r"assign_\d+: writes x, which must be a tensor of jax.*, but got a tensor of numpy(.|\n)*would be lost"
    refused(HostError, lost, assign, N, X)
    refused(HostError, "writes x, .* a value of type float", assign, 1.0, X)
    np.testing.assert_array_equal(mode(lambda x: assign(x, N))(jnp.asarray(X)), N)
    refused(
        ArgumentTypeError, r"argument y: must be a tensor of .*, but got builtins.list", add_rows, X, [1.0]
    )
    refused(ArgumentTypeError, "argument y: .* no mask", add_rows, X, np.ma.array(N))
    refused(
        ArgumentTypeError,
        "argument y: dtype: must be one that kernels take",
        add_rows,
        X,
        np.array(list("abcd")),
    )
    refused(ArgumentValueError, "argument factor: must fit into the integers", times, X, 2**64)
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    refused(HostError, "y is a tensor of torch, and x one of jax", add_rows, X, torch.from_numpy(N))
    refused(HostError, "writes self, which must be a tensor of jax", polyop.aten("add_"), N, X)
    norm, ones = polyop.aten("batch_norm"), np.ones(2, np.float32)
    rows = X.reshape(2, 2)
    with pytest.raises(HostError, match="writes running_mean, which must be a tensor of jax"):
        mode(lambda x: norm(x, None, None, ones, ones, True, 0.1, 1e-5, False))(jnp.asarray(rows))
    found = mode(lambda x: norm(x, None, None, ones, ones, False, 0.1, 0.0, False))(jnp.asarray(rows))
    np.testing.assert_allclose(found, rows - 1)


def test_what_a_module_writes_is_known_after_its_first_call():
    ops = CustomOpBuilder("jax_beside_writes", [MODULE], backend="CPU").load()
    x, n = jnp.ones(3), np.ones(3)
    for _ in range(2):  # the first call shows what the function writes
        with pytest.raises(HostError, match="two_in_place: writes arg1, which must be a tensor of jax"):
            ops.two_in_place(x, n)
    np.testing.assert_array_equal(n, np.ones(3))


def test_devices_and_meshes():
    """An array that is committed to one device stays there, and of a mesh all devices get the array."""
    place = jax.devices()[-1]
    assert add_rows(jax.device_put(X, place), N).devices() == {place}
    masked = pytest.importorskip("torch", reason="PyTorch is not installed") and polyop.aten("masked_select")
    np.testing.assert_array_equal(masked(jax.device_put(X, place), N > 0), X[N > 0])
    mesh = jax.make_mesh((jax.device_count(),), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec("d")
    rows = jnp.zeros(4 * jax.device_count(), np.float32)
    split = jax.shard_map(lambda a: add_rows(N, a), mesh=mesh, in_specs=spec, out_specs=spec)
    np.testing.assert_array_equal(jax.jit(split)(rows), np.tile(N, jax.device_count()))
