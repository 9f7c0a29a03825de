"""A network with dropout is trained in PyTorch and in JAX: the same masks, and so the same losses."""

import jax
import jax.numpy as jnp
import numpy as np
import torch
from kernels import dropout, stochastic_bfloat16

random = np.random.default_rng(0)
X = random.normal(size=(64, 8)).astype(np.float32)
Y = np.sin(X.sum(1, keepdims=True))
W1, W2 = (random.normal(size=s).astype(np.float32) / 4 for s in ((8, 32), (32, 1)))
STEPS, RATE = 40, 0.1


# [torch]
def train_torch():
    w1, w2 = (torch.tensor(w, requires_grad=True) for w in (W1, W2))
    x, y, losses = torch.tensor(X), torch.tensor(Y), []
    optimizer = torch.optim.SGD([w1, w2], RATE)
    for step in range(STEPS):
        hidden = dropout(torch.tanh(x @ w1), torch.tensor([1, step]), 0.2)
        loss = ((hidden @ w2 - y) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# [/torch]


# [jax]
def loss_of(weights, key):
    hidden = dropout(jnp.tanh(X @ weights[0]), key, 0.2)
    return jnp.mean((hidden @ weights[1] - Y) ** 2)


def train_jax():
    weights, losses = (jnp.asarray(W1), jnp.asarray(W2)), []
    descend = jax.jit(jax.value_and_grad(loss_of))
    for step in range(STEPS):
        loss, slopes = descend(weights, jnp.array([1, step]))
        weights = tuple(w - RATE * slope for w, slope in zip(weights, slopes, strict=True))
        losses.append(float(loss))
    return losses


# [/jax]


def main():
    losses = train_torch()
    np.testing.assert_allclose(train_jax(), losses, rtol=1e-3)
    assert losses[-1] < losses[0]
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}, in PyTorch and in JAX")

    keys = jax.vmap(jax.random.key_data)(jax.random.split(jax.random.key(0), 1000))
    masks = jax.vmap(dropout, (None, 0))(jnp.ones((4, 5)), keys)  # a mask for each key
    np.testing.assert_allclose(masks.mean(0), 1, atol=0.15)

    third = np.full(100_000, 1 / 3, np.float32)
    rounded = stochastic_bfloat16(third, np.array([7, 0], np.uint32)).astype(np.float32)
    assert len(set(rounded.tolist())) == 2  # the neighbours of 1/3
    print(f"1/3 as bfloat16: {sorted(set(rounded.tolist()))}, with the mean {rounded.mean():.6f}")
    np.testing.assert_allclose(rounded.mean(), 1 / 3, atol=1e-5)


if __name__ == "__main__":
    main()
