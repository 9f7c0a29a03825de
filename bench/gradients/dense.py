"""Products of matrices, scores of attention, convolutions."""
# ruff: noqa: F821 - the language's words are not names of this module

from __future__ import annotations

from typing import Any

from loops.data import spread

from .table import Gradient


def matmul(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = 0.0
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return c


def matmul_data(dtype: Any, m: int, n: int, k: int) -> tuple[Any, ...]:
    return spread((m, k), dtype, -1.0, 1.0), spread((k, n), dtype, -1.0, 1.0, which=1)


def attention(q, k):
    p = output_tensor((q.shape[0], k.shape[0]), q.dtype)
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            p[i, j] = 0.0
            for d in range(q.shape[1]):
                p[i, j] += q[i, d] * k[j, d]
        top = p[i, 0]
        for j in range(1, k.shape[0]):
            top = max(top, p[i, j])
        total = 0.0
        for j in range(k.shape[0]):
            p[i, j] = exp(p[i, j] - top)
            total += p[i, j]
        for j in range(k.shape[0]):
            p[i, j] = p[i, j] / total
    return p


def attention_data(dtype: Any, m: int, n: int, d: int) -> tuple[Any, ...]:
    return spread((m, d), dtype, -0.5, 0.5), spread((n, d), dtype, -0.5, 0.5, which=1)


def attention_jax(q: Any, k: Any) -> Any:
    import jax

    return jax.nn.softmax(q @ k.T, axis=1)


def conv2d(x, w):
    rows = x.shape[2] - w.shape[2] + 1
    columns = x.shape[3] - w.shape[3] + 1
    y = output_tensor((x.shape[0], w.shape[0], rows, columns), x.dtype)
    for n in range(x.shape[0]):
        for o in range(w.shape[0]):
            for i in range(rows):
                for j in range(columns):
                    total = 0.0
                    for c in range(x.shape[1]):
                        for p in range(w.shape[2]):
                            for q in range(w.shape[3]):
                                total += x[n, c, i + p, j + q] * w[o, c, p, q]
                    y[n, o, i, j] = total
    return y


def conv2d_data(dtype: Any, n: int, c: int, o: int, size: int, taps: int) -> tuple[Any, ...]:
    x = spread((n, c, size, size), dtype, -1.0, 1.0)
    return x, spread((o, c, taps, taps), dtype, -1.0, 1.0, which=1)


def conv2d_torch(x: Any, w: Any) -> Any:
    import torch

    return torch.nn.functional.conv2d(x, w)


def conv2d_jax(x: Any, w: Any) -> Any:
    import jax

    return jax.lax.conv(x, w, (1, 1), "VALID")


PROGRAMS = (
    Gradient(
        name="matmul",
        kernel=matmul,
        make=matmul_data,
        torch=lambda a, b: a @ b,
        jax=lambda a, b: a @ b,
        small={"m": 5, "n": 6, "k": 7},
        bench={"m": 512, "n": 512, "k": 512},
    ),
    Gradient(
        name="attention scores",
        kernel=attention,
        make=attention_data,
        torch=lambda q, k: (q @ k.T).softmax(1),
        jax=attention_jax,
        small={"m": 5, "n": 6, "d": 4},
        bench={"m": 1024, "n": 1024, "d": 64},
    ),
    Gradient(
        name="conv2d",
        kernel=conv2d,
        make=conv2d_data,
        torch=conv2d_torch,
        jax=conv2d_jax,
        small={"n": 2, "c": 3, "o": 4, "size": 7, "taps": 3},
        bench={"n": 4, "c": 16, "o": 32, "size": 64, "taps": 3},
    ),
)
