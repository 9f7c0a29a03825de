"""Complex loop kernels in JAX, whose gradients are the conjugates of PyTorch's, beside the same function of JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import polyop
from loop_samples import complex_kernels

ROWS = complex_kernels.ROWS
IDS = [row.kernel.__name__ for row in ROWS]


@pytest.fixture(autouse=True)
def double():
    """The tolerances are those of double precision."""
    with jax.enable_x64(True):
        yield


def several(value):
    return value if isinstance(value, tuple) else (value,)


def noise(value, random):
    made = random.normal(size=value.shape)
    if jnp.iscomplexobj(value):
        made = made + 1j * random.normal(size=value.shape)
    return jnp.asarray(made, value.dtype)


def native(row):
    return lambda *arrays: row.native(jnp, *arrays)


def arrays(row, seed=0):
    return tuple(map(jnp.asarray, complex_kernels.inputs(row, seed=seed)))


@pytest.mark.slow(1)
@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_gradients_are_those_of_jax(row):
    random = np.random.default_rng(1)
    op, inputs = polyop.kernel(row.kernel), arrays(row)
    out, pull = jax.vjp(native(row), *inputs)
    cotangents = jax.tree.map(lambda one: noise(one, random), out)
    theirs = pull(cotangents)
    _, ours = jax.vjp(op, *inputs)
    compiled = jax.jit(lambda inputs, given: jax.vjp(op, *inputs)[1](given))
    for found in (ours(cotangents), compiled(inputs, cotangents)):
        for one, other in zip(found, theirs, strict=True):
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10)


def test_the_gradient_of_a_real_loss_is_the_conjugate_of_pytorchs():
    row = ROWS[IDS.index("escaping")]
    op, (c,) = polyop.kernel(row.kernel), arrays(row)
    gradient = jax.grad(lambda c: abs(op(c)[1]).sum())(c)
    np.testing.assert_allclose(gradient, jax.grad(lambda c: abs(native(row)(c)[1]).sum())(c), 1e-9)
    step = 1e-6
    loss = lambda c: abs(np.asarray(op(np.asarray(c))[1])).sum()  # noqa: E731 - beside its differences
    for k in range(2):
        moved = [np.asarray(c) + sign * step * np.eye(len(c))[k] for sign in (1, -1, 1j, -1j)]
        by_re, by_im = (loss(moved[n]) - loss(moved[n + 1]) for n in (0, 2))
        np.testing.assert_allclose(gradient[k], (by_re - 1j * by_im) / (2 * step), 1e-6)


@pytest.mark.slow(2)
@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_tangents_and_batches_are_those_of_jax(row):
    random = np.random.default_rng(1)
    op, inputs = polyop.kernel(row.kernel), arrays(row)
    directions = tuple(noise(one, random) for one in inputs)
    ours, theirs = (jax.jvp(f, inputs, directions)[1] for f in (op, native(row)))
    for one, other in zip(several(ours), several(theirs), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10)
    samples = [jnp.stack(pair) for pair in zip(inputs, arrays(row, 3), strict=True)]
    batched = several(jax.vmap(op)(*samples))
    each = [several(op(*(s[k] for s in samples))) for k in range(2)]
    for one, alone in zip(batched, zip(*each, strict=True), strict=True):
        np.testing.assert_allclose(one, jnp.stack(alone), rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_hessian_of_a_real_loss():
    row = ROWS[0]
    op, (x, w) = polyop.kernel(row.kernel), arrays(row)

    def loss(function):
        def of(re):
            y = function(re + 1j * re[::-1], w)
            return (y * jnp.conj(y)).real.sum()

        return of

    ours, theirs = (jax.hessian(loss(f))(x.real) for f in (op, native(row)))
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)
