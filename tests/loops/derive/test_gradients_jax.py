"""Derived gradients in JAX: against its own differences, once and twice, and inside jit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import polyop
from derive_samples import kernels

OPERATORS = kernels.OPERATORS


@pytest.fixture(autouse=True)
def double():
    """Differences need double precision."""
    with jax.enable_x64(True):
        yield


def arrays(shapes, below):
    """Return real inputs, and an index where the last one is below something."""
    random = np.random.default_rng(0)
    index = [jnp.asarray(random.integers(0, below, shapes[-1]))] if below else []
    return [jnp.asarray(random.normal(size=s)) for s in (shapes[:-1] if below else shapes)], index


@pytest.mark.slow
@pytest.mark.parametrize("row", OPERATORS, ids=[row[0].__name__ for row in OPERATORS])
def test_check_grads_and_jit(row):
    function, shapes, below = row
    op = polyop.Custom(function, func_type="hybrid")
    reals, index = arrays(shapes, below)
    check_grads(lambda *x: op(*map(jnp.asarray, x), *index), reals, order=2, modes=["rev"])
    gradient = jax.grad(lambda x: (op(x, *reals[1:], *index) ** 2).sum())
    np.testing.assert_allclose(jax.jit(gradient)(reals[0]), gradient(reals[0]), rtol=1e-12)
