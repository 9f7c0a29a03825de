"""What the new frameworks lack: two loop kernels with derived gradients, and PyTorch's operator."""

# ruff: noqa: F821 - the words of the loop language

import math

import numpy as np

import polyop


@polyop.kernel(name="graph::sparse_product")
def sparse_product(weight, x, source, target):
    """Return for each node the sum of its neighbours, weighted; x is (nodes, heads, features)."""
    y = output_tensor(x.shape, x.dtype)
    for e in range(source.shape[0]):
        for h in range(x.shape[1]):
            for k in range(x.shape[2]):
                y[target[e], h, k] += weight[e, h] * x[source[e], h, k]
    return y


@polyop.kernel(name="graph::segment_softmax")
def segment_softmax(score, target, nodes: int):
    """Return exp(score), divided by its sum over the edges that end in the same node; (edges, heads)."""
    y = output_tensor(score.shape, score.dtype)
    for h in range(score.shape[1]):
        top = np.full((nodes,), -math.inf, score.dtype)
        total = allocate((nodes,), score.dtype)
        for e in range(score.shape[0]):
            top[target[e]] = max(top[target[e]], score[e, h])
        for e in range(score.shape[0]):
            y[e, h] = exp(score[e, h] - stop_gradient(top[target[e]]))
            total[target[e]] += y[e, h]
        for e in range(score.shape[0]):
            y[e, h] = y[e, h] / total[target[e]]
    return y


scatter_reduce = polyop.aten("scatter_reduce.two")
