"""Layers of networks: pooling, attention by an online softmax, borders, the largest of a row."""
# ruff: noqa: F821 - the language's words are not names of this module

from __future__ import annotations

import math
from typing import Any

import numpy as np
from loops.data import spread

from .table import Gradient, scattered


def max_pool(x, window: int = 3, stride: int = 2):
    rows = (x.shape[2] - window) // stride + 1
    columns = (x.shape[3] - window) // stride + 1
    y = output_tensor((x.shape[0], x.shape[1], rows, columns), x.dtype)
    for n, c, i, j in grid((x.shape[0], x.shape[1], rows, columns)):
        largest = -math.inf
        for p in range(window):
            for q in range(window):
                largest = max(largest, x[n, c, i * stride + p, j * stride + q])
        y[n, c, i, j] = largest
    return y


def max_pool_data(dtype: Any, n: int, c: int, size: int) -> tuple[Any, ...]:
    return (spread((n, c, size, size), dtype, -1.0, 1.0),)


def max_pool_torch(x: Any) -> Any:
    import torch

    return torch.nn.functional.max_pool2d(x, 3, 2)


def max_pool_jax(x: Any) -> Any:
    import jax

    return jax.lax.reduce_window(x, -math.inf, jax.lax.max, (1, 1, 3, 3), (1, 1, 2, 2), "VALID")


def flash_attention(q, k, v):
    out = output_tensor((q.shape[0], v.shape[1]), q.dtype)
    for i in range(q.shape[0]):
        top = -math.inf
        total = 0.0
        for j in range(k.shape[0]):
            score = dot(q[i], k[j]) / sqrt(q.shape[1])
            new = max(top, score)
            weight = exp(score - new)
            shrink = exp(top - new)
            total = total * shrink + weight
            out[i] = out[i] * shrink + weight * v[j]
            top = new
        out[i] = out[i] / total
    return out


def attention_data(dtype: Any, rows: int, features: int) -> tuple[Any, ...]:
    return tuple(spread((rows, features), dtype, -1.0, 1.0, which=which) for which in range(3))


def attention_torch(q: Any, k: Any, v: Any) -> Any:
    import torch

    return torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None])[0]


def attention_jax(q: Any, k: Any, v: Any) -> Any:
    import jax

    return jax.nn.softmax(q @ k.T / math.sqrt(q.shape[1]), axis=1) @ v


def largest(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        best = 0
        for j in range(1, x.shape[1]):
            if x[i, j] > x[i, best]:
                best = j
        y[i] = x[i, best]
    return y


def rows_data(dtype: Any, rows: int, columns: int) -> tuple[Any, ...]:
    return (spread((rows, columns), dtype, -1.0, 1.0),)


def convolution(x, w):
    rows, columns = x.shape[2] - w.shape[2] + 1, x.shape[3] - w.shape[3] + 1
    y = output_tensor((x.shape[0], w.shape[0], rows, columns), x.dtype)
    for n, o, i, j in grid((x.shape[0], w.shape[0], rows, columns)):
        y[n, o, i, j] = 0.0
        for c in range(x.shape[1]):
            for p in range(w.shape[2]):
                for q in range(w.shape[3]):
                    y[n, o, i, j] += x[n, c, i + p, j + q] * w[o, c, p, q]
    return y


def convolution_data(dtype: Any, n: int, c: int, o: int, size: int) -> tuple[Any, ...]:
    return spread((n, c, size, size), dtype, -1.0, 1.0), spread((o, c, 3, 3), dtype, -1.0, 1.0, which=1)


def convolution_torch(x: Any, w: Any) -> Any:
    import torch

    return torch.nn.functional.conv2d(x, w)


def convolution_jax(x: Any, w: Any) -> Any:
    import jax

    return jax.lax.conv(x, w, (1, 1), "VALID")


def clamped_border(x, w):
    y = output_tensor(x.shape, x.dtype)
    radius = w.shape[0] // 2
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = 0.0
            for k in range(w.shape[0]):
                y[i, j] += w[k] * x[i, min(max(j + k - radius, 0), x.shape[1] - 1)]
    return y


def border_data(dtype: Any, rows: int, columns: int) -> tuple[Any, ...]:
    return spread((rows, columns), dtype, -1.0, 1.0), spread((5,), dtype, -1.0, 1.0, which=1)


def border_torch(x: Any, w: Any) -> Any:
    import torch

    padded = torch.nn.functional.pad(x[:, None], (2, 2), mode="replicate")
    return torch.nn.functional.conv1d(padded, w[None, None])[:, 0]


def border_jax(x: Any, w: Any) -> Any:
    import jax

    padded = jax.numpy.pad(x, ((0, 0), (2, 2)), mode="edge")[:, None]
    return jax.lax.conv(padded, w[None, None], (1,), "VALID")[:, 0]


def embedding(table, index):
    y = output_tensor((index.shape[0], index.shape[1], table.shape[1]), table.dtype)
    for i in range(index.shape[0]):
        for j in range(index.shape[1]):
            y[i, j] = table[index[i, j]]
    return y


def embedding_data(dtype: Any, words: int, features: int, texts: int, length: int) -> tuple[Any, ...]:
    table = spread((words, features), dtype, -1.0, 1.0)
    return table, scattered(texts * length, words).astype(np.int64).reshape(texts, length)


def embedding_torch(table: Any, index: Any) -> Any:
    import torch

    return torch.nn.functional.embedding(index, table)


PROGRAMS = (
    Gradient(
        name="max pool",
        kernel=max_pool,
        make=max_pool_data,
        torch=max_pool_torch,
        jax=max_pool_jax,
        small={"n": 2, "c": 3, "size": 9},
        bench={"n": 8, "c": 32, "size": 113},
        both_ways=1.0,
    ),
    Gradient(
        name="flash attention",
        kernel=flash_attention,
        make=attention_data,
        torch=attention_torch,
        jax=attention_jax,
        small={"rows": 7, "features": 4},
        bench={"rows": 1024, "features": 64},
        both_ways=2.5,
    ),
    Gradient(
        name="largest of a row",
        kernel=largest,
        make=rows_data,
        torch=lambda x: x.max(1).values,
        jax=lambda x: x.max(1),
        small={"rows": 7, "columns": 5},
        bench={"rows": 4096, "columns": 1000},
        both_ways=1.0,
    ),
    Gradient(
        name="conv2d into its result",
        kernel=convolution,
        make=convolution_data,
        torch=convolution_torch,
        jax=convolution_jax,
        small={"n": 2, "c": 3, "o": 4, "size": 7},
        bench={"n": 4, "c": 16, "o": 32, "size": 64},
        both_ways=1.2,
    ),
    Gradient(
        name="clamped border",
        kernel=clamped_border,
        make=border_data,
        torch=border_torch,
        jax=border_jax,
        small={"rows": 3, "columns": 9},
        bench={"rows": 256, "columns": 8192},
        both_ways=1.0,
    ),
    Gradient(
        name="embedding",
        kernel=embedding,
        make=embedding_data,
        torch=embedding_torch,
        jax=lambda table, index: table[index],
        small={"words": 7, "features": 5, "texts": 2, "length": 4},
        bench={"words": 20000, "features": 128, "texts": 64, "length": 512},
        both_ways=1.0,
    ),
)
