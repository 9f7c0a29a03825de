"""The problems in Numba, which has no gradients: the forward function alone."""

from __future__ import annotations

import math

import numba
import numpy as np

EPSILON, SOFTENING, TOLERANCE = np.float32(1e-5), np.float32(0.01), np.float32(1e-3)
HALF, ONE = np.float32(0.5), np.float32(1.0)


@numba.njit(fastmath=True)
def rms_norm_kernel(x, gain, y):
    for i in range(x.shape[0]):
        total = np.float32(0.0)
        for j in range(x.shape[1]):
            total += x[i, j] * x[i, j]
        scale = ONE / math.sqrt(total / np.float32(x.shape[1]) + EPSILON)
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * scale * gain[j]
    return y


def rms_norm(x, gain, weight):
    y = np.empty_like(weight)
    return lambda: rms_norm_kernel(x, gain, y), None


@numba.njit(fastmath=True)
def scan_kernel(a, x, y):
    y[:] = x
    for t in range(1, y.shape[0]):
        for j in range(y.shape[1]):
            y[t, j] = math.tanh(a[t, j] * y[t - 1, j] + y[t, j])
    return y


def scan(a, x, weight):
    y = np.empty_like(weight)
    return lambda: scan_kernel(a, x, y), None


@numba.njit(fastmath=True)
def max_pool_kernel(x, y):
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            best = x[2 * i, 2 * j]
            for p in range(3):
                for q in range(3):
                    best = max(best, x[2 * i + p, 2 * j + q])
            y[i, j] = best
    return y


def max_pool(x, weight):
    y = np.empty_like(weight)
    return lambda: max_pool_kernel(x, y), None


@numba.njit(fastmath=True)
def n_body_kernel(p, m, f):
    for i in range(p.shape[0]):
        fx = fy = fz = np.float32(0.0)
        for j in range(p.shape[0]):
            dx, dy, dz = p[j, 0] - p[i, 0], p[j, 1] - p[i, 1], p[j, 2] - p[i, 2]
            s = ONE / math.sqrt(dx * dx + dy * dy + dz * dz + SOFTENING)
            k = m[j] * s * s * s
            fx += k * dx
            fy += k * dy
            fz += k * dz
        f[i, 0], f[i, 1], f[i, 2] = fx, fy, fz
    return f


def n_body(p, m, weight):
    f = np.empty_like(weight)
    return lambda: n_body_kernel(p, m, f), None


@numba.njit(fastmath=True)
def overwritten_kernel(x, w, buffer, y):
    for i in range(x.shape[0]):
        buffer[i] = x[i] * w[i]
        y[i] = buffer[i] * buffer[i]
        buffer[i] = math.exp(-buffer[i])
        y[i] += buffer[i] * x[i]
    return y


def overwritten(x, w, weight):
    buffer, y = np.empty_like(weight), np.empty_like(weight)
    return lambda: overwritten_kernel(x, w, buffer, y), None


@numba.njit(fastmath=True)
def newton_kernel(x, y):
    for i in range(x.shape[0]):
        r = ONE
        while abs(r * r - x[i]) > TOLERANCE * x[i]:
            r = HALF * (r + x[i] / r)
        y[i] = r
    return y


def newton(x, weight):
    y = np.empty_like(weight)
    return lambda: newton_kernel(x, y), None
