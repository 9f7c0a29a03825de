"""Each kernel and its gradient in PyTorch and in JAX, beside what PyTorch composes."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import torch
from kernels import attention, rotary, selective_scan

import polyop

warnings.filterwarnings("ignore", category=polyop.UninitialisedWarning)  # outputs are added up from zero
RANDOM = np.random.default_rng(0)


def numbers(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def turned(x):
    half = x.shape[2] // 2
    angle = torch.arange(x.shape[0])[:, None] * 10000.0 ** (-torch.arange(half) / half)
    one, other, cos, sin = x[..., :half], x[..., half:], angle.cos()[:, None], angle.sin()[:, None]
    return torch.cat([one * cos - other * sin, other * cos + one * sin], -1)


def scanned(x, step, a, b, c):
    h, rows = torch.zeros_like(a), []
    for t in range(x.shape[0]):
        h = (step[t, :, None] * a).exp() * h + (step[t] * x[t])[:, None] * b[t]
        rows.append(h @ c[t])
    return torch.stack(rows)


def attended(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None])[0]


CASES = (
    (rotary, turned, (numbers(9, 2, 8),)),
    (attention, attended, (numbers(12, 8), numbers(20, 8), numbers(20, 5))),
    (
        selective_scan,
        scanned,
        (numbers(7, 5), abs(numbers(7, 5)), -abs(numbers(5, 3)), numbers(7, 3), numbers(7, 3)),
    ),
)


def main():
    for operator, peer, arrays in CASES:
        results = []
        for function in (operator, peer):
            tensors = [torch.tensor(x, requires_grad=True) for x in arrays]
            out = function(*tensors)
            results.append([out, *torch.autograd.grad(out.square().sum(), tensors)])
        ours, expected = ([x.detach().numpy() for x in row] for row in results)

        every = tuple(range(len(arrays)))
        loss = jax.jit(jax.value_and_grad(lambda *a, f=operator: jnp.square(f(*a)).sum(), argnums=every))
        value, slopes = loss(*arrays)

        for one, other in zip(ours, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(value, np.square(expected[0]).sum(), rtol=1e-5)
        for one, other in zip(slopes, expected[1:], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
        print(f"{operator.schema}: value and gradient agree in PyTorch and JAX")


if __name__ == "__main__":
    main()
