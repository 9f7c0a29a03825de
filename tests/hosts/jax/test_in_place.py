"""Operators that write an argument: JAX's arrays do not change, the new value is returned."""

import numpy as np
import pytest

import polyop
from polyop import Custom
from polyop.core.errors import GradientError

jax = pytest.importorskip("jax", reason="JAX is not installed")
import jax.numpy as jnp  # noqa: E402

X = np.array([[1, -2, 3], [4, 5, -6]], np.float32)
modes = pytest.mark.parametrize("mode", [lambda f: f, jax.jit], ids=["eager", "jit"])


@modes
def test_the_new_value_is_returned_and_the_array_unchanged(scale_, mode):
    x = jnp.asarray(X)
    result = mode(lambda x: scale_(x, 2.0))(x)
    np.testing.assert_array_equal(result, 2 * X)
    np.testing.assert_array_equal(x, X)
    twice = mode(lambda x: scale_(scale_(x, 2.0), 3.0) + x)(x)
    np.testing.assert_array_equal(twice, 7 * X)
    np.testing.assert_array_equal(x, X)


def test_a_donated_array_is_written_where_it_is(scale_):
    run = jax.jit(lambda x: scale_(x, 2.0), donate_argnums=0)
    text = run.lower(jnp.asarray(X)).compile().as_text()
    assert "output_to_operand_aliasing={" in text and "copy(" not in text
    x = jnp.array(X)
    where = x.unsafe_buffer_pointer()
    result = run(x)
    assert result.unsafe_buffer_pointer() == where and x.is_deleted()
    np.testing.assert_array_equal(result, 2 * X)


def test_the_same_array_twice(scale_, kernels):
    op = polyop.operator("jax_in_place::add_to(Tensor(a!) x, Tensor y) -> ()", add_to)
    x = jnp.asarray(X)
    for mode in (lambda f: f, jax.jit):
        np.testing.assert_array_equal(mode(op)(x, x), 2 * X)
        np.testing.assert_array_equal(x, X)


def add_to(x, y):
    x += y


@modes
def test_outputs_of_the_schema_precede_written_arguments(mode):
    tag = mode.__name__.strip("<>")

    def kernel(x, y, z):
        y += x
        z *= 2
        return x - 1

    op = polyop.operator(
        f"jax_in_place::three_{tag}(Tensor x, Tensor(a!) y, Tensor(b!) z) -> (Tensor, Tensor(b!))",
        kernel,
        infer="x",
    )
    x, y, z = jnp.asarray(X), jnp.asarray(X + 1), jnp.asarray(X + 2)
    fresh, new_z, new_y = mode(op)(x, y, z)
    np.testing.assert_array_equal(fresh, X - 1)
    np.testing.assert_array_equal(new_z, 2 * (X + 2))
    np.testing.assert_array_equal(new_y, 2 * X + 1)
    np.testing.assert_array_equal(z, X + 2)


@modes
def test_lists_and_absent_arguments(mode):
    tag = mode.__name__.strip("<>")

    def kernel(xs, y):
        for k in range(len(xs)):
            xs[k][...] += k + (0 if y is None else y)

    op = polyop.operator(f"jax_in_place::list_{tag}(Tensor(a!)[] xs, Tensor? y=None) -> ()", kernel)
    first, second = mode(lambda *xs: op(list(xs)))(jnp.asarray(X), jnp.asarray(X))
    np.testing.assert_array_equal(first, X)
    np.testing.assert_array_equal(second, X + 1)


@modes
def test_several_rows_under_vmap(scale_, mode):
    op = polyop.operator(f"jax_in_place::scale_{mode.__name__.strip('<>')}_(Tensor(a!) x, float a) -> ()",
                         lambda x, a: np.multiply(x, a, out=x))  # fmt: skip
    with pytest.warns(polyop.FallbackWarning, match="scale_.*: vmap runs one call per sample"):
        result = mode(jax.vmap(lambda x: op(x, 2.0)))(jnp.asarray(X))
    np.testing.assert_array_equal(result, 2 * X)


def test_elementwise_under_vmap(kernels):
    op = polyop.operator("jax_in_place::elementwise_(Tensor(a!) x, float a) -> ()", kernels("scale_in_place"),
                         batch="elementwise")  # fmt: skip
    x = jnp.asarray(X)
    np.testing.assert_array_equal(jax.vmap(lambda x: op(x, 2.0), 1, 1)(x), 2 * X)
    np.testing.assert_array_equal(x, X)


def test_a_written_argument_has_no_gradient(scale_):
    x = jnp.asarray(X)
    message = (
        "scale_: (writes an argument in place, and such an operator has no gradient|has no gradient rule)"
    )
    with pytest.raises(GradientError, match=message):
        jax.grad(lambda x: scale_(x, 2.0).sum())(x)
    with pytest.raises(GradientError, match=message):
        jax.jvp(lambda x: scale_(x, 2.0), (x,), (x,))
    np.testing.assert_array_equal(jax.grad(lambda y: (y * scale_(x, 2.0)).sum())(x), 2 * X)


@modes
def test_a_loop_kernel_that_writes_its_argument(mode):
    @polyop.kernel
    def shift(x, y):
        for i in range(x.shape[0]):
            x[i] = x[i] + y[i]
        return x

    op = Custom(shift, func_type="hybrid")
    x = jnp.arange(3.0)
    result = mode(op)(x, x + 1)
    np.testing.assert_array_equal(jax.tree.leaves(result)[-1], 2 * np.arange(3.0) + 1)
    np.testing.assert_array_equal(x, np.arange(3.0))


@modes
def test_aten_in_place(mode):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    x = jnp.asarray(X)
    np.testing.assert_array_equal(mode(lambda x: polyop.aten("add_.Tensor")(x, x))(x), 2 * X)
    np.testing.assert_array_equal(x, X)


@modes
def test_in_a_scan(scale_, mode):
    run = lambda x: jax.lax.scan(lambda c, _: (scale_(c, 2.0), c), x, None, length=3)  # noqa: E731
    last, every = mode(run)(jnp.asarray(X))
    np.testing.assert_array_equal(last, 8 * X)
    np.testing.assert_array_equal(every, np.stack([X, 2 * X, 4 * X]))
