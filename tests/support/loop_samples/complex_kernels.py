# ruff: noqa: F821 - kernels, whose words are no names here
"""Loop kernels of complex numbers, each beside the same function of whole arrays, for PyTorch and JAX alike."""

from typing import NamedTuple

import numpy as np


def product(x, w):
    """A complex matrix times a vector."""
    y = output_tensor((w.shape[0],), x.dtype)
    for i in range(w.shape[0]):
        y[i] = 0
        for j in range(w.shape[1]):
            y[i] += w[i, j] * x[j]
    return y


def fourier(x):
    """The discrete Fourier transform of each row, by a sum."""
    y = output_tensor(x.shape, x.dtype)
    n = x.shape[1]
    for i in range(x.shape[0]):
        for k in range(n):
            total = 0j
            for j in range(n):
                angle = -2.0 * np.pi * ((j * k) % n) / n
                total += x[i, j] * exp(1j * angle)
            y[i, k] = total
    return y


def rotary(x, theta):
    """A rotary embedding: pairs of features are complex numbers that turn with the position."""
    y = output_tensor(x.shape, x.dtype)
    half = x.shape[1] // 2
    for p in range(x.shape[0]):
        for k in range(half):
            z = complex(x[p, k], x[p, half + k]) * exp(1j * (p * theta[k]))
            y[p, k] = z.real
            y[p, half + k] = z.imag
    return y


def escaping(c, steps=6):
    """The Mandelbrot iteration, a fixed number of times; and its absolute value, a complex number too."""
    size = output_tensor(c.shape, c.dtype)
    last = output_tensor(c.shape, c.dtype)
    for i in range(c.shape[0]):
        z = 0j
        for _ in range(steps):
            z = z * z + c[i]
        last[i] = z
        size[i] = abs(z)
    return size, last


def parts(z):
    """What gives real numbers."""
    y = output_tensor((z.shape[0], 4), "float64")
    for i in range(z.shape[0]):
        y[i, 0] = abs(z[i])
        y[i, 1] = angle(z[i])
        y[i, 2] = real(z[i]) * imag(z[i])
        y[i, 3] = (z[i] * z[i].conj()).real
    return y


def functions(z, w):
    """Each function that a complex number has."""
    y = output_tensor((z.shape[0], 11), z.dtype)
    for i in range(z.shape[0]):
        y[i, 0] = exp(z[i])
        y[i, 1] = log(z[i])
        y[i, 2] = sqrt(z[i])
        y[i, 3] = sin(z[i])
        y[i, 4] = cos(z[i])
        y[i, 5] = sinh(z[i])
        y[i, 6] = cosh(z[i])
        y[i, 7] = z[i] / w[i]
        y[i, 8] = conj(z[i]) - 2 * w[i] / (1 + 2j)
        y[i, 9] = z[i] ** 3 + w[i] ** -2
        y[i, 10] = z[i] * w[i] if real(z[i]) > 0 else exp(w[i]) * z[i]
    return y


def rows(x, w):
    """Rows, local arrays and tables."""
    y = output_tensor((x.shape[0],), x.dtype)
    taps = [1.0, 0.5j, -0.25]
    for i in range(x.shape[0]):
        r = x[i] * w
        t = allocate((3,), x.dtype)
        for k in range(3):
            t[k] = taps[k] * r[k]
        y[i] = sum(r) + dot(t[:], w[:3])
        y[i] *= 1 - 1j
    return y


def recurrence(x, a):
    """A first-order filter: each number depends on the one before."""
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if i == 0:
            y[i] = x[i]
        else:
            y[i] = x[i] + a[()] * y[i - 1]
    return y


def native_fourier(xp, x):
    return xp.fft.fft(x)


def native_rotary(xp, x, theta):
    half = x.shape[1] // 2
    turn = xp.exp(1j * xp.arange(x.shape[0])[:, None] * theta)
    z = (x[:, :half] + 1j * x[:, half:]) * turn
    return xp.concatenate([z.real, z.imag], 1)


def native_escaping(xp, c, steps=6):
    z = 0 * c
    for _ in range(steps):
        z = z * z + c
    return abs(z) + 0 * c, z


def native_parts(xp, z):
    return xp.stack([abs(z), xp.angle(z), z.real * z.imag, (z * xp.conj(z)).real], 1)


def native_functions(xp, z, w):
    each = (xp.exp, xp.log, xp.sqrt, xp.sin, xp.cos, xp.sinh, xp.cosh)
    last = xp.where(z.real > 0, z * w, xp.exp(w) * z)
    rest = (z / w, xp.conj(z) - 2 * w / (1 + 2j), z**3 + w**-2, last)
    return xp.stack([*(function(z) for function in each), *rest], 1)


def native_rows(xp, x, w):
    r = x * w
    taps = (1.0, 0.5j, -0.25)
    return (r.sum(1) + sum(taps[k] * r[:, k] * w[k] for k in range(3))) * (1 - 1j)


def native_recurrence(xp, x, a):
    y = [x[0]]
    for i in range(1, x.shape[0]):
        y.append(x[i] + a * y[-1])
    return xp.stack(y)


class Row(NamedTuple):
    """A kernel, the shapes of its inputs ("c" complex, "f" real), and the function of whole arrays."""

    kernel: object
    inputs: str
    native: object


ROWS = (
    Row(product, "c5 c4x5", lambda xp, x, w: w @ x),
    Row(fourier, "c3x8", native_fourier),
    Row(rotary, "f5x6 f3", native_rotary),
    Row(escaping, "c9", native_escaping),
    Row(parts, "c7", native_parts),
    Row(functions, "c6 c6", native_functions),
    Row(rows, "c4x5 c5", native_rows),
    Row(recurrence, "c9 c", native_recurrence),
)


def inputs(row, of="complex128", seed=0):
    """Return the inputs of a row as NumPy arrays."""
    random = np.random.default_rng(seed)
    made = []
    for text in row.inputs.split():
        shape = tuple(map(int, text[1:].split("x"))) if text[1:] else ()
        value = random.normal(size=shape) * 0.5
        if text[0] == "c":
            value = value + 0.5j * random.normal(size=shape)
        made.append(np.asarray(value, of if text[0] == "c" else np.empty(0, of).real.dtype))
    return made
