# ruff: noqa: F821 - the words of the language
"""Complex loop kernels in Paddle, whose complex gradients follow PyTorch's convention, as its own operators do."""

import numpy as np
import paddle

import polyop


def turned(z, w):
    y = output_tensor(z.shape, z.dtype)
    for i in range(z.shape[0]):
        y[i] = z[i] * w[i] * (2 - 1j)
    return y


rng = np.random.default_rng(5)
Z, W, WEIGHT = (rng.normal(size=(3, 4, 2)) @ np.array([1, 1j])).astype(np.complex64)


def test_values_and_gradients():
    op = polyop.kernel(turned)
    weight = paddle.to_tensor(WEIGHT)
    found = []
    for function in (op, lambda z, w: z * w * (2 - 1j)):
        z, w = (paddle.to_tensor(a, stop_gradient=False) for a in (Z, W))
        out = function(z, w)
        np.testing.assert_allclose(out.numpy(), Z * W * (2 - 1j), 1e-5)
        paddle.real(out * weight).sum().backward()
        found.append([z.grad.numpy(), w.grad.numpy()])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, 1e-5)
    np.testing.assert_allclose(found[0][0], np.conj(W * (2 - 1j) * WEIGHT), 1e-5)
