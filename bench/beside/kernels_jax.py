"""The problems in JAX, jitted. Its arrays cannot be overwritten, so each is a function of values."""

from __future__ import annotations

import jax
import jax.numpy as jnp

EPSILON, SOFTENING, TOLERANCE = 1e-5, 0.01, 1e-3
LIMIT = 40


def calls(function, inputs, weight):
    inputs, weight = [jnp.asarray(x) for x in inputs], jnp.asarray(weight)
    forward = jax.jit(function)
    gradient = jax.jit(lambda *inputs: jax.vjp(function, *inputs)[1](weight))
    return lambda: jax.block_until_ready(forward(*inputs)), lambda: jax.block_until_ready(gradient(*inputs))


def normalised(x, gain):
    return x * jax.lax.rsqrt((x * x).mean(axis=1, keepdims=True) + EPSILON) * gain


def rms_norm(x, gain, weight):
    return calls(normalised, (x, gain), weight)


def scanned(a, x):
    def step(h, row):
        h = jnp.tanh(row[0] * h + row[1])
        return h, h

    return jnp.concatenate([x[:1], jax.lax.scan(step, x[0], (a[1:], x[1:]))[1]])


def scan(a, x, weight):
    return calls(scanned, (a, x), weight)


def max_pool(x, weight):
    return calls(
        lambda x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (3, 3), (2, 2), "VALID"), (x,), weight
    )


def forces(p, m):
    d = p[None, :] - p[:, None]
    s = jax.lax.rsqrt((d * d).sum(axis=2) + SOFTENING)
    return ((m * s**3)[:, :, None] * d).sum(axis=1)


def n_body(p, m, weight):
    return calls(forces, (p, m), weight)


def without_buffer(x, w):
    product = x * w
    return product * product + jnp.exp(-product) * x


def overwritten(x, w, weight):
    return calls(without_buffer, (x, w), weight)


def is_wrong(r, x):
    return jnp.abs(r * r - x) > TOLERANCE * x


def better(r, x):
    return jnp.where(is_wrong(r, x), 0.5 * (r + x / r), r)


def root(x):
    return jax.lax.while_loop(lambda r: is_wrong(r, x).any(), lambda r: better(r, x), jnp.ones_like(x))


def newton(x, weight):
    return calls(root, (x,), weight)


def root_in_steps(x):
    return jax.lax.fori_loop(0, LIMIT, lambda _, r: better(r, x), jnp.ones_like(x))


def newton_other(x, weight):
    return calls(root_in_steps, (x,), weight)
