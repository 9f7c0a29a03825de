"""The same network in JAX, for one sentence: a function of Flax-style parameters, batched by ``vmap``."""

import jax
from jax import nn
from jax import numpy as jnp
from state_space_kernels import causal_convolution, selective_scan
from state_space_torch import RANK, STATE


def dense(p, x):
    """Return x times the kernel, plus the bias if there is one."""
    return x @ p["kernel"] + p.get("bias", 0)


def layer_norm(p, x):
    """Return each row with mean 0 and variance 1, scaled."""
    centred = x - x.mean(-1, keepdims=True)
    return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * p["scale"] + p["bias"]


def mixer(p, x):
    """Return x plus what the layer makes of it."""
    hidden, gate = jnp.split(dense(p["in_proj"], layer_norm(p["norm"], x)), 2, -1)
    hidden = nn.silu(causal_convolution(hidden, p["conv"]["weight"], p["conv"]["bias"]))
    step, b, c = jnp.split(dense(p["x_proj"], hidden), [RANK, RANK + STATE], -1)
    step = nn.softplus(dense(p["dt_proj"], step))
    y = selective_scan(hidden, step, -jnp.exp(p["log_a"]), b, c, p["skip"])
    return x + dense(p["out_proj"], y * nn.silu(gate))


def sentence(p, _, letters):
    """Return the scores (time, LETTERS) of one sentence."""
    x = p["embedding"]["embedding"][letters]
    for name in sorted(p["layers"]):
        x = mixer(p["layers"][name], x)
    return dense(p["head"], layer_norm(p["norm"], x))


network = jax.vmap(sentence, in_axes=(None, None, 0))


def loss(scores, following):
    """Return the mean cross entropy of the next letters."""
    return -jnp.take_along_axis(nn.log_softmax(scores, -1), following[..., None], -1).mean()
