# ruff: noqa: F821 - programs in the language, whose words are no names here
"""Kernels for the tests of what frameworks do with derived rules, each with inputs."""

import numpy as np

from loop_samples import convolutions, dense, running_maxima, small


def matmul(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = 0.0
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return c


def softmax(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        m = x[i, 0]
        for j in range(1, x.shape[1]):
            m = max(m, x[i, j])
        s = 0.0
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - m)
            s += y[i, j]
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] / s
    return y


def layernorm(x, gain, bias):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        mean = 0.0
        for j in range(x.shape[1]):
            mean += x[i, j]
        mean = mean / x.shape[1]
        square = 0.0
        for j in range(x.shape[1]):
            square += (x[i, j] - mean) * (x[i, j] - mean)
        r = 1.0 / sqrt(square / x.shape[1] + 1e-5)
        for j in range(x.shape[1]):
            y[i, j] = (x[i, j] - mean) * r * gain[j] + bias[j]
    return y


def stencil(a):
    b = output_tensor(a.shape, a.dtype)
    for i in range(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            b[i, j] = a[i, j] * (a[i + 1, j] - a[i - 1, j]) + 0.1 * (a[i, j - 1] + a[i, j + 1])
    return b


def scan(a, x):
    y = output_tensor(x.shape, x.dtype)
    for b in range(x.shape[0]):
        h = x[b, 0]
        y[b, 0] = h
        for t in range(1, x.shape[1]):
            h = a[b, t] * h + x[b, t]
            y[b, t] = h * h
    return y


def gather(x, at):
    y = output_tensor((at.shape[0], x.shape[1]), x.dtype)
    for i in range(at.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[at[i], j] * x[at[i], j]
    return y


def scatter(x, at):
    y = output_tensor(x.shape, x.dtype)
    for i in range(at.shape[0]):
        for j in range(x.shape[1]):
            y[at[i], j] += x[i, j] * x[i, j]
    return y


def rms_norm(x, g):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s += x[i, j] * x[i, j]
        r = rsqrt(s / x.shape[1] + 1e-5)
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * r * g[j]
    return y


def scores(q, k):
    p = output_tensor((q.shape[0], k.shape[0]), q.dtype)
    for i in range(q.shape[0]):
        m = -1e30
        for j in range(k.shape[0]):
            s = 0.0
            for d in range(q.shape[1]):
                s += q[i, d] * k[j, d]
            p[i, j] = s * 0.5
            m = max(m, p[i, j])
        z = 0.0
        for j in range(k.shape[0]):
            p[i, j] = exp(p[i, j] - m)
            z += p[i, j]
        for j in range(k.shape[0]):
            p[i, j] = p[i, j] / z
    return p


def conv2d(x, w):
    y = output_tensor((w.shape[0], x.shape[1] - w.shape[2] + 1, x.shape[2] - w.shape[3] + 1), x.dtype)
    for o in range(w.shape[0]):
        for i in range(x.shape[1] - w.shape[2] + 1):
            for j in range(x.shape[2] - w.shape[3] + 1):
                y[o, i, j] = 0.0
                for c in range(w.shape[1]):
                    for a in range(w.shape[2]):
                        for b in range(w.shape[3]):
                            y[o, i, j] += x[c, i + a, j + b] * w[o, c, a, b]
    return y


def index_add(x, at):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j]
    for i in range(at.shape[0]):
        for j in range(x.shape[1]):
            y[at[i], j] += x[i, j] * x[i, j]
    return y


def gated_scan(x, u):
    y = output_tensor(x.shape, x.dtype)
    for b in range(x.shape[0]):
        h = 0.0
        for t in range(x.shape[1]):
            z = 1.0 / (1.0 + exp(-(x[b, t] + u[b, t] * h)))
            n = tanh(x[b, t] + z * h)
            h = (1.0 - z) * n + z * h
            y[b, t] = h
    return y


def sweeps(x):
    u = output_tensor(x.shape, x.dtype)
    v = allocate(x.shape, x.dtype)
    for i in range(x.shape[0]):
        u[i] = x[i]
    for t in range(4):
        for i in range(1, x.shape[0] - 1):
            v[i] = u[i] * (u[i + 1] - u[i - 1]) * 0.1 + u[i] + t * 0.1
        for i in range(1, x.shape[0] - 1):
            u[i] = v[i]
    return u


_random = np.random.default_rng(7)
CASES = {
    function.__name__: (function, [_random.normal(size=shape) for shape in shapes], whole)
    for function, shapes, whole in (
        (matmul, [(2, 3), (3, 2)], []),
        (softmax, [(2, 4)], []),
        (layernorm, [(2, 4), (4,), (4,)], []),
        (stencil, [(4, 5)], []),
        (scan, [(2, 4), (2, 4)], []),
        (gather, [(3, 2)], [np.array([2, 0, 2, 1])]),
        (scatter, [(3, 2)], [np.array([2, 0, 2])]),
    )
}
"""For transforms: function, real inputs, then inputs of whole numbers."""

OF_PASSES = CASES | {
    function.__name__: (function, [_random.normal(size=shape) for shape in shapes], [])
    for function, shapes in (
        (small.named_index, [(6,)]),
        (small.three_channels, [(4, 3)]),
        (small.partly_written, [(4,)]),
        (small.exponentials_of_a_row, [(3, 4)]),
        (small.largest_square, [(5,)]),
        (small.greatest_of_pairs, [(5,)]),
        (small.held_back, [(5,)]),
        (running_maxima.prefixes, [(2, 4)]),
        (dense.online_attention, [(2, 3), (4, 3), (4, 2)]),
        (small.by_sign, [(6,)]),
        (small.named_sum, [(6,), (6,)]),
        (convolutions.looked_for, [(2, 4), (3, 2, 3)]),
    )
}
"""For the passes of derivations: those for transforms, and more, so that each pass changes one."""

OPERATORS = (
    (softmax, ((3, 5),), 0),
    (layernorm, ((3, 5), (5,), (5,)), 0),
    (rms_norm, ((3, 5), (5,)), 0),
    (scores, ((3, 4), (5, 4)), 0),
    (conv2d, ((2, 5, 4), (2, 2, 3, 2)), 0),
    (gather, ((4, 3), (5,)), 4),
    (index_add, ((4, 3), (4,)), 4),
    (gated_scan, ((2, 4), (2, 4)), 0),
    (sweeps, ((7,),), 0),
    (matmul, ((3, 4), (4, 2)), 0),
)
"""For gradients, larger: function, shapes, and the bound of the last input if it is an index (0: it is none)."""
