"""C++ modules from JAX: what Forward saves becomes outputs, and Backward another operator."""

import pathlib

import numpy as np
import pytest

import polyop
from polyop.core.errors import GradientError, InferError
from polyop.define.module.builder import CustomOpBuilder

jax = pytest.importorskip("jax", reason="JAX is not installed")
import jax.numpy as jnp  # noqa: E402

SOURCES = pathlib.Path(__file__).parents[2] / "sources"
modes = pytest.mark.parametrize("mode", [lambda f: f, jax.jit], ids=["eager", "jit"])


def same(result, expected):
    assert isinstance(result, jax.Array), type(result)
    np.testing.assert_array_equal(np.asarray(result), np.asarray(expected))


@pytest.fixture(scope="session")
def module():
    return CustomOpBuilder("module_gradients", [str(SOURCES / "module_gradients.cpp")], backend="CPU").load()


@modes
def test_module_functions(module, mode):
    x = jnp.asarray([0.5, -1.25, 2.0])
    same(mode(module.square)(x), np.asarray(x) ** 2)
    product, total = mode(module.both)(x, x + 1)
    np.testing.assert_allclose(product, np.asarray(x) * (np.asarray(x) + 1))
    np.testing.assert_allclose(total, 2 * np.asarray(x) + 1)
    np.testing.assert_allclose(mode(lambda x: module.bias(x))(x), x)
    np.testing.assert_allclose(mode(lambda x: module.sum_list([x, x]))(x), 2 * x)
    index = mode(module.with_index)(x)[1]
    assert index.dtype == np.int64


MODULE = [
    # name, call, the same in jax.numpy
    ("square", lambda ops, x: ops.square(x), lambda x: x * x),
    ("exp_times", lambda ops, x: ops.exp_times(x), lambda x: jnp.exp(x) * x),
    ("exp_times, loop", lambda ops, x: ops.exp_times(x, by_loop=True), lambda x: jnp.exp(x) * x),
    ("exp_times, no input", lambda ops, x: ops.exp_times(x, keep_input=False), lambda x: jnp.exp(x) * x),
    ("sigmoid", lambda ops, x: ops.sigmoid(x), jax.nn.sigmoid),
    ("state", lambda ops, x: ops.state(x, 3, [2, 5], 'a "label" é'), lambda x: 30 * x + 0.5),
    ("bias", lambda ops, x: ops.bias(x), lambda x: x),
    ("sum_list", lambda ops, x: ops.sum_list([x, x * x, x]), lambda x: 2 * x + x * x),
    ("both, one used", lambda ops, x: ops.both(x, 3 * x)[0], lambda x: 3 * x * x),
    ("both, other used", lambda ops, x: ops.both(x, 3 * x, materialize=False)[1], lambda x: 4 * x),
    ("marked", lambda ops, x: sum(ops.marked(x)), lambda x: 2 * x + jax.lax.stop_gradient(3 * x)),
    ("integers beside", lambda ops, x: ops.with_index(x)[0], lambda x: 2 * x),
]


@pytest.mark.slow(9)
@modes
@pytest.mark.parametrize(("call", "formula"), [row[1:] for row in MODULE], ids=[row[0] for row in MODULE])
def test_gradients_of_a_module(module, mode, call, formula):
    x = jnp.asarray([0.5, -1.25, 2.0])
    weight = jnp.asarray([1.0, 10.0, -3.0])
    result = mode(jax.value_and_grad(lambda x: (call(module, x) * weight).sum()))(x)
    expected = jax.value_and_grad(lambda x: (formula(x) * weight).sum())(x)
    np.testing.assert_allclose(result[0], expected[0], rtol=1e-12)
    np.testing.assert_allclose(result[1], expected[1], rtol=1e-12)


@modes
@pytest.mark.parametrize(
    ("name", "formula"),
    [("exp_times", lambda x: jnp.exp(x) * x), ("sigmoid", jax.nn.sigmoid)],
    ids=["exp", "sigmoid"],
)
def test_second_derivatives_of_a_module(module, mode, name, formula):
    x = jnp.asarray([0.5, -1.25, 2.0])
    result = mode(jax.grad(lambda x: jax.grad(lambda x: getattr(module, name)(x).sum())(x).sum()))(x)
    np.testing.assert_allclose(result, jax.grad(lambda x: jax.grad(lambda x: formula(x).sum())(x).sum())(x))


@pytest.mark.slow
def test_second_derivatives_of_a_module_with_own_loops_are_an_error(module):
    with pytest.raises(polyop.PolyopError, match="square: its Backward has no gradient: it runs square_grad"):
        jax.grad(lambda x: jax.grad(lambda x: module.square(x).sum())(x).sum())(jnp.ones(2))


def test_a_failed_backward_of_a_module_in_words(module):
    with pytest.raises(Exception, match="module_gradients::wrong.*Backward does not like this"):
        jax.grad(lambda x: module.wrong(x, "throws")[0].sum())(jnp.ones(2))


TRANSFORMS = [
    ("vmap", lambda f, x: jax.vmap(f)(x[:, None] * x)),
    ("vmap of grad", lambda f, x: jax.vmap(jax.grad(lambda x: f(x).sum()))(x[:, None] * x)),
    ("grad of vmap", lambda f, x: jax.grad(lambda x: jax.vmap(f)(x).sum())(x[:, None] * x)),
    ("jvp", lambda f, x: jax.jvp(f, (x,), (x + 1,))),
    ("hessian", lambda f, x: jax.hessian(lambda x: f(x).sum())(x)),
    ("grad of scan", lambda f, x: jax.grad(
        lambda x: jax.lax.scan(lambda c, _: (f(c) / 3, None), x, None, length=3)[0].sum())(x)),
    ("checkpoint", lambda f, x: jax.grad(jax.checkpoint(lambda x: f(f(x)).sum()))(x)),
]  # fmt: skip


@pytest.mark.slow(1)
@modes
@pytest.mark.filterwarnings("ignore::polyop.FallbackWarning")
@pytest.mark.parametrize("transform", [row[1] for row in TRANSFORMS], ids=[row[0] for row in TRANSFORMS])
def test_transforms_of_a_module(module, mode, transform):
    x = jnp.asarray([0.5, -1.25, 2.0])
    result = mode(lambda x: transform(module.exp_times, x))(x)
    expected = transform(lambda x: jnp.exp(x) * x, x)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10), result, expected)


@pytest.mark.parametrize("how", ["twice", "argument", "view", "between"])
def test_forms_of_a_returned_tensor(module, how):
    x = jnp.asarray([0.5, -1.25, 2.0])
    first = {"twice": x * x, "argument": x, "view": x, "between": 2 * x * x}[how]
    for mode in (lambda f: f, jax.jit):
        result = mode(lambda x: module.returned(x, how))(x)
        np.testing.assert_allclose(result[0], first)
        np.testing.assert_allclose(result[1], x * x)
    slope = {"twice": 2 * x, "argument": 1, "view": 1, "between": 4 * x}[how]
    grad = jax.grad(lambda x: module.returned(x, how)[0].sum() + 10 * module.returned(x, how)[1].sum())(x)
    np.testing.assert_allclose(grad, slope + 20 * x)


@pytest.fixture(scope="session")
def edges():
    return CustomOpBuilder("module_edges", [str(SOURCES / "module_edges.cpp")], backend="CPU").load()


@modes
def test_a_function_that_writes_its_argument(edges, mode):
    x = jnp.asarray([1.0, 2.0], jnp.float32)
    same(mode(edges.double_)(x), [2, 4])
    same(x, [1, 2])
    with pytest.raises(GradientError, match="module_edges::double_: writes an argument in place"):
        mode(jax.grad(lambda x: edges.double_(x).sum()))(x)


@modes
def test_shapes_that_depend_on_data_are_an_error(edges, mode):
    with pytest.raises(
        InferError, match="(?s)read_and_filled of module_edges.so: the data of a tensor was requested.*shape"
    ):
        mode(edges.read_and_filled)(jnp.ones(2, jnp.float32))


@modes
def test_lists_of_lists_and_values(edges, mode):
    x = jnp.asarray([1.0, 2.0], jnp.float32)
    same(mode(lambda x: edges.times_n(x, 3))(x), [3, 6])
    same(mode(edges.plain_read)(x), [1, 2])
