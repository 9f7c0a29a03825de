"""A matrix product with 4-bit weights, and its gradient, in NumPy, PyTorch and JAX."""

import jax
import numpy as np
import torch
from kernels import matmul, pack

random = np.random.default_rng(0)
X, W = (random.normal(size=shape).astype(np.float32) for shape in ((5, 16), (7, 16)))


def main():
    packed, scale = pack(W)
    rounded = np.round(W / scale[:, None]) * scale[:, None]
    np.testing.assert_allclose(matmul(X, packed, scale), X @ rounded.T, rtol=1e-5, atol=1e-5)
    print(f"{W.nbytes} bytes of weights are {packed.nbytes + scale.nbytes}; "
          f"the largest error of a product is {abs(X @ (W - rounded).T).max():.2f}")  # fmt: skip

    x = torch.tensor(X, requires_grad=True)
    matmul(x, torch.tensor(packed), torch.tensor(scale)).sum().backward()
    np.testing.assert_allclose(x.grad, np.tile(rounded.sum(0), (5, 1)), rtol=1e-4, atol=1e-5)
    weights = jax.numpy.asarray(packed), jax.numpy.asarray(scale)
    slope = jax.jit(jax.grad(lambda x: matmul(x, *weights).sum()))(X)
    np.testing.assert_allclose(slope, x.grad, rtol=1e-5, atol=1e-6)
    print("the gradient is the same in PyTorch and JAX")


if __name__ == "__main__":
    main()
