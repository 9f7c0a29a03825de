"""``jax.linear_transpose`` and ``jax.experimental.jet``: errors that name the operator and the way out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.jet import jet

import polyop
from polyop.core.errors import UnsupportedError

OP = polyop.operator(
    "not_offered::double(Tensor x) -> Tensor",
    lambda x: 2 * x,
    batch="elementwise",
    gradient=lambda x, out, dout: (2 * dout,),
)


@polyop.kernel(name="not_offered::loops")
def loops(x):
    y = output_tensor(x.shape, x.dtype)  # noqa: F821 - a word of the language
    for i in range(x.shape[0]):
        y[i] = 2.0 * x[i]
    return y


@pytest.mark.parametrize("op", [OP, loops], ids=lambda op: op.name)
@pytest.mark.parametrize(
    "around", [lambda f: f, jax.jit, lambda f: lambda x: 3 * f(x) + 0], ids=["", "jit", "function"]
)
def test_transposition(op, around):
    x = jnp.ones(3)
    with pytest.raises(
        UnsupportedError, match=rf"{op.name}: jax.linear_transpose needs an operator .*\n.*\n.*jax.vjp"
    ):
        jax.linear_transpose(around(op), x)(x)
    np.testing.assert_array_equal(
        jax.vjp(op, jnp.zeros_like(x))[1](x)[0], 2 * np.ones(3)
    )  # what the error says


@pytest.mark.parametrize("op", [OP, loops], ids=lambda op: op.name)
def test_series(op):
    x = jnp.ones(3)
    with pytest.raises(
        UnsupportedError, match=rf"{op.name}: jax.experimental.jet has rules .*\n.*\n.*jax.jvp of jax.jvp"
    ):
        jet(lambda x: jnp.sin(op(x)), (x,), ((x, x),))
    with pytest.raises(UnsupportedError, match=f"{op.name}: jax.experimental.jet has rules"):
        jet(lambda x: jax.jvp(op, (x,), (x,))[1], (x,), ((x, x),))


def test_other_rules_are_left_alone():
    x = jnp.ones(3)
    np.testing.assert_array_equal(jax.linear_transpose(lambda x: 4 * x, x)(x)[0], 4 * np.ones(3))
