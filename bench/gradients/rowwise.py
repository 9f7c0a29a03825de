"""Norms, softmax and activations: row by row, with parameters along the rows."""
# ruff: noqa: F821 - the language's words are not names of this module

from __future__ import annotations

from typing import Any

from loops.data import spread

from .table import Gradient


def layer_norm(x, gamma, beta):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        mean = 0.0
        for j in range(x.shape[1]):
            mean += x[i, j]
        mean = mean / x.shape[1]
        square = 0.0
        for j in range(x.shape[1]):
            square += (x[i, j] - mean) * (x[i, j] - mean)
        scale = rsqrt(square / x.shape[1] + 1e-5)
        for j in range(x.shape[1]):
            y[i, j] = (x[i, j] - mean) * scale * gamma[j] + beta[j]
    return y


def layer_norm_torch(x: Any, gamma: Any, beta: Any) -> Any:
    import torch

    return torch.nn.functional.layer_norm(x, (x.shape[1],), gamma, beta, 1e-5)


def layer_norm_jax(x: Any, gamma: Any, beta: Any) -> Any:
    import jax

    centred = x - x.mean(axis=1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5) * gamma + beta


def layer_norm_data(dtype: Any, m: int, n: int) -> tuple[Any, ...]:
    gamma = spread((n,), dtype, 0.5, 1.5, which=1)
    return spread((m, n), dtype, -1.0, 1.0), gamma, spread((n,), dtype, -1.0, 1.0, which=2)


def rms_norm(x, gamma):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        square = 0.0
        for j in range(x.shape[1]):
            square += x[i, j] * x[i, j]
        scale = rsqrt(square / x.shape[1] + 1e-5)
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * scale * gamma[j]
    return y


def rms_norm_torch(x: Any, gamma: Any) -> Any:
    import torch

    return torch.nn.functional.rms_norm(x, (x.shape[1],), gamma, 1e-5)


def rms_norm_jax(x: Any, gamma: Any) -> Any:
    import jax

    return x * jax.lax.rsqrt((x**2).mean(axis=1, keepdims=True) + 1e-5) * gamma


def scaled_data(dtype: Any, m: int, n: int) -> tuple[Any, ...]:
    return spread((m, n), dtype, -1.0, 1.0), spread((n,), dtype, 0.5, 1.5, which=1)


def scaled(x, gamma):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * gamma[j]
    return y


def softmax(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        top = x[i, 0]
        for j in range(1, x.shape[1]):
            top = max(top, x[i, j])
        total = 0.0
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - top)
            total += y[i, j]
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] / total
    return y


def softmax_jax(x: Any) -> Any:
    import jax

    return jax.nn.softmax(x, axis=1)


def gelu(x, bias):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            t = x[i, j] + bias[j]
            y[i, j] = 0.5 * t * (1.0 + erf(t * 0.7071067811865476))
    return y


def gelu_torch(x: Any, bias: Any) -> Any:
    import torch

    return torch.nn.functional.gelu(x + bias)


def gelu_jax(x: Any, bias: Any) -> Any:
    import jax

    return jax.nn.gelu(x + bias, approximate=False)


SMALL = {"m": 5, "n": 7}

PROGRAMS = (
    Gradient(
        name="layer norm",
        kernel=layer_norm,
        make=layer_norm_data,
        torch=layer_norm_torch,
        jax=layer_norm_jax,
        small=SMALL,
        bench={"m": 8192, "n": 1024},
    ),
    Gradient(
        name="dgamma",
        kernel=scaled,
        make=scaled_data,
        torch=lambda x, gamma: x * gamma,
        jax=lambda x, gamma: x * gamma,
        small=SMALL,
        bench={"m": 8192, "n": 2048},
        inputs=(1,),
        written="dgamma",
    ),
    Gradient(
        name="RMS norm",
        kernel=rms_norm,
        make=scaled_data,
        torch=rms_norm_torch,
        jax=rms_norm_jax,
        small=SMALL,
        bench={"m": 8192, "n": 1024},
    ),
    Gradient(
        name="softmax",
        kernel=softmax,
        make=lambda dtype, m, n: (spread((m, n), dtype, -4.0, 4.0),),
        torch=lambda x: x.softmax(1),
        jax=softmax_jax,
        small=SMALL,
        bench={"m": 4096, "n": 1024},
    ),
    Gradient(
        name="gelu with bias",
        kernel=gelu,
        make=scaled_data,
        torch=gelu_torch,
        jax=gelu_jax,
        small=SMALL,
        bench={"m": 4096, "n": 1024},
    ),
)
