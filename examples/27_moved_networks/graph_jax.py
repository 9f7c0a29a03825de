"""The same network in JAX: a function of Flax-style parameters and statistics."""

from graph_kernels import scatter_reduce, segment_softmax, sparse_product
from graph_torch import GRAPHS, HEADS, WIDTH
from jax import lax, nn
from jax import numpy as jnp


def convolution(p, x, source, target, degree):
    """Return (nodes, WIDTH)."""
    weight = lax.rsqrt(degree[source] * degree[target])[:, None]
    return sparse_product(weight, (x @ p["linear"]["kernel"])[:, None], source, target)[:, 0] + p["bias"]


def attention(p, x, source, target):
    """Return (nodes, HEADS * WIDTH)."""
    x = (x @ p["linear"]["kernel"]).reshape(-1, HEADS, WIDTH)
    from_source, from_target = (x * p["to_source"]).sum(-1), (x * p["to_target"]).sum(-1)
    score = nn.leaky_relu(from_source[source] + from_target[target], 0.2)
    weight = segment_softmax(score, target, x.shape[0])
    return sparse_product(weight, x, source, target).reshape(x.shape[0], -1)


def batch_norm(p, statistics, x):
    """Return the features, normalised by what is known of them."""
    return (x - statistics["mean"]) * lax.rsqrt(statistics["var"] + 1e-5) * p["scale"] + p["bias"]


def network(p, statistics, x, source, target, degree, graph):
    """Return (GRAPHS, CLASSES)."""
    x = nn.elu(convolution(p["convolution"], x, source, target, degree))
    x = batch_norm(p["norm"], statistics["norm"], attention(p["attention"], x, source, target))
    place = jnp.broadcast_to(graph[:, None], x.shape)
    lowest = jnp.full((GRAPHS, x.shape[1]), -jnp.inf)
    pooled = scatter_reduce(lowest, 0, place, x, "amax")
    return pooled @ p["head"]["kernel"] + p["head"]["bias"]


def loss(scores, labels):
    """Return the mean cross entropy."""
    return -jnp.take_along_axis(nn.log_softmax(scores, -1), labels[:, None], -1).mean()
