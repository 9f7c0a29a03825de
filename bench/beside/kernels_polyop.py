"""The problems as loop kernels of polyop. The gradients are derived from the loops."""
# ruff: noqa: F821 - the language's words are not names of this module

from __future__ import annotations

import polyop

EPSILON, SOFTENING, TOLERANCE = 1e-5, 0.01, 1e-3
LIMIT = 40


def calls(operator, inputs, weight):
    def gradient():
        _, pull = operator.vjp(*inputs)
        return pull(weight)

    return lambda: operator(*inputs), gradient


@polyop.kernel
def rms_norm_kernel(x, gain):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += x[i, j] * x[i, j]
        scale = rsqrt(total / x.shape[1] + EPSILON)
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * scale * gain[j]
    return y


def rms_norm(x, gain, weight):
    return calls(rms_norm_kernel, (x, gain), weight)


@polyop.kernel
def scan_kernel(a, x):
    y = output_tensor(x.shape, x.dtype)
    for j in range(x.shape[1]):
        for t in range(x.shape[0]):
            y[t, j] = x[t, j]
        for t in range(1, x.shape[0]):
            y[t, j] = tanh(a[t, j] * y[t - 1, j] + y[t, j])
    return y


def scan(a, x, weight):
    return calls(scan_kernel, (a, x), weight)


@polyop.kernel
def max_pool_kernel(x):
    y = output_tensor(((x.shape[0] - 1) // 2, (x.shape[1] - 1) // 2), x.dtype)
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            best = x[2 * i, 2 * j]
            for p in range(3):
                for q in range(3):
                    best = max(best, x[2 * i + p, 2 * j + q])
            y[i, j] = best
    return y


def max_pool(x, weight):
    return calls(max_pool_kernel, (x,), weight)


@polyop.kernel
def n_body_kernel(p, m):
    f = output_tensor(p.shape, p.dtype)
    for i in range(p.shape[0]):
        for j in range(p.shape[0]):
            dx = p[j, 0] - p[i, 0]
            dy = p[j, 1] - p[i, 1]
            dz = p[j, 2] - p[i, 2]
            s = rsqrt(dx * dx + dy * dy + dz * dz + SOFTENING)
            k = m[j] * s * s * s
            f[i, 0] += k * dx
            f[i, 1] += k * dy
            f[i, 2] += k * dz
    return f


def n_body(p, m, weight):
    return calls(n_body_kernel, (p, m), weight)


@polyop.kernel
def overwritten_kernel(x, w):
    y = output_tensor(x.shape, x.dtype)
    buffer = allocate(x.shape, x.dtype)
    for i in range(x.shape[0]):
        buffer[i] = x[i] * w[i]
        y[i] = buffer[i] * buffer[i]
        buffer[i] = exp(-buffer[i])
        y[i] += buffer[i] * x[i]
    return y


def overwritten(x, w, weight):
    return calls(overwritten_kernel, (x, w), weight)


@polyop.kernel
def newton_kernel(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        r = 1.0
        while abs(r * r - x[i]) > TOLERANCE * x[i]:
            r = 0.5 * (r + x[i] / r)
        y[i] = r
    return y


def newton(x, weight):
    return calls(newton_kernel, (x,), weight)


@polyop.kernel
def newton_other_kernel(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        r = 1.0
        for _ in range(LIMIT):
            if abs(r * r - x[i]) <= TOLERANCE * x[i]:
                break
            r = 0.5 * (r + x[i] / r)
        y[i] = r
    return y


def newton_other(x, weight):
    return calls(newton_other_kernel, (x,), weight)
