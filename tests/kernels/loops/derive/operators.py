# ruff: noqa: F821 - kernels, whose words are no names here
"""Operators that people train with, as loop kernels."""


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


def layer_norm(x, g, b):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        m = 0.0
        for j in range(x.shape[1]):
            m += x[i, j]
        m = m / x.shape[1]
        v = 0.0
        for j in range(x.shape[1]):
            v += (x[i, j] - m) * (x[i, j] - m)
        r = 1.0 / sqrt(v / x.shape[1] + 1e-5)
        for j in range(x.shape[1]):
            y[i, j] = (x[i, j] - m) * r * g[j] + b[j]
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


def gather(x, k):
    y = output_tensor((k.shape[0], x.shape[1]), x.dtype)
    for i in range(k.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[k[i], j] * x[k[i], j]
    return y


def scatter(x, k):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j]
    for i in range(k.shape[0]):
        for j in range(x.shape[1]):
            y[k[i], j] += x[i, j] * x[i, j]
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


def matmul(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = 0.0
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return c


OPERATORS = (
    (softmax, ((3, 5),), 0),
    (layer_norm, ((3, 5), (5,), (5,)), 0),
    (rms_norm, ((3, 5), (5,)), 0),
    (scores, ((3, 4), (5, 4)), 0),
    (conv2d, ((2, 5, 4), (2, 2, 3, 2)), 0),
    (gather, ((4, 3), (5,)), 4),
    (scatter, ((4, 3), (4,)), 4),
    (gated_scan, ((2, 4), (2, 4)), 0),
    (sweeps, ((7,),), 0),
    (matmul, ((3, 4), (4, 2)), 0),
)
"""Function, shapes, and what the last input, an index, is below (0: it is a real one too)."""
