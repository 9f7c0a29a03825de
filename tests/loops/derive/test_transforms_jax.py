"""JAX's transforms of loop kernels: forward mode, second derivatives, batches, all by derived kernels."""

import numpy as np
import pytest

import polyop

jax = pytest.importorskip("jax", reason="JAX is not installed")
import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

NAMES = ("matmul", "softmax", "layernorm", "stencil", "scan", "gather", "scatter")


@pytest.fixture(autouse=True)
def double():
    """JAX computes in double precision."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def _case(cases, name):
    function, real, whole = cases[name]
    op = polyop.Custom(function, func_type="hybrid")
    return lambda *xs: op(*map(jnp.asarray, (*xs, *whole))), tuple(map(jnp.asarray, real))


def _called(function, *xs):
    """Return the primitives of a program, those inside others too."""
    found = []

    def visit(program):
        for equation in program.eqns:
            found.append(equation.primitive.name)
            inner = (getattr(value, "jaxpr", value) for value in equation.params.values())
            for one in inner:
                if hasattr(one, "eqns"):
                    visit(one)

    visit(jax.make_jaxpr(function)(*xs).jaxpr)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_derivatives_of_both_modes_to_the_second_order(cases, name):
    function, xs = _case(cases, name)
    check_grads(function, xs, order=2, modes=("fwd", "rev"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["matmul", "softmax", "scatter"])
def test_jacobians_and_hessians(cases, name):
    function, xs = _case(cases, name)
    number = lambda *p: (function(*p) ** 2).sum()  # noqa: E731
    np.testing.assert_allclose(
        jax.jit(jax.jacfwd(function))(*xs), jax.jacrev(function)(*xs), rtol=1e-12, atol=1e-12
    )
    hessian = jax.hessian(number)(*xs)
    step = 1e-6 * jnp.ones_like(xs[0])
    moved = (jax.grad(number)(xs[0] + step, *xs[1:]) - jax.grad(number)(xs[0] - step, *xs[1:])) / 2e-6
    np.testing.assert_allclose(
        hessian.sum(tuple(range(xs[0].ndim, 2 * xs[0].ndim))), moved, rtol=1e-5, atol=1e-6
    )


@pytest.mark.slow(1)
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("name", NAMES)
def test_a_batch_is_one_call(cases, name, axis):
    function, xs = _case(cases, name)
    rows = [[x + k for k in range(3)] for x in xs]
    stacked = [jnp.stack(row, axis) for row in rows]
    batched = jax.vmap(function, in_axes=axis)
    ones = [function(*row) for row in zip(*rows, strict=True)]
    np.testing.assert_allclose(jax.jit(batched)(*stacked), np.stack(ones), rtol=0, atol=1e-14)
    called = _called(batched, *stacked)
    assert called.count("polyop") == 1
    assert not {"scan", "while"} & set(called)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_gradients_of_samples_have_no_loop(cases, name):
    function, xs = _case(cases, name)
    gradient = jax.grad(lambda *p: (function(*p) ** 2).sum(), tuple(range(len(xs))))
    rows = [[x + k for k in range(3)] for x in xs]
    stacked = [jnp.stack(row) for row in rows]
    ones = [gradient(*row) for row in zip(*rows, strict=True)]
    for k, grads in enumerate(jax.vmap(gradient)(*stacked)):
        np.testing.assert_allclose(grads, np.stack([one[k] for one in ones]), rtol=1e-12, atol=1e-12)
    called = _called(jax.vmap(gradient), *stacked)
    assert called.count("polyop") == 2
    assert not {"scan", "while"} & set(called)


@pytest.mark.slow
def test_nested_batches_and_their_gradient(cases):
    function, (a, b) = _case(cases, "matmul")
    many = jnp.stack([jnp.stack([a, a + 1]), jnp.stack([a * 2, a - 1]), jnp.stack([a, a * 3])])
    nested = jax.vmap(jax.vmap(function, in_axes=(0, None)), in_axes=(1, None), out_axes=1)
    np.testing.assert_allclose(nested(many, b), many @ b, rtol=1e-12)
    grad = jax.grad(lambda x: (nested(x, b) ** 2).sum())(many)
    np.testing.assert_allclose(grad, 2 * (many @ b) @ b.T, rtol=1e-12)
