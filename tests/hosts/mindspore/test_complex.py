# ruff: noqa: F821 - the words of the language
"""Complex loop kernels in MindSpore, whose complex gradients follow PyTorch's convention, as its own operators do."""

import numpy as np
import pytest

from polyop import Custom

ms = pytest.importorskip("mindspore", reason="MindSpore is not installed")


def turned(z, w):
    y = output_tensor(z.shape, z.dtype)
    for i in range(z.shape[0]):
        y[i] = z[i] * w[i] * (2 - 1j)
    return y


rng = np.random.default_rng(5)
Z, W, WEIGHT = (rng.normal(size=(3, 4, 2)) @ np.array([1, 1j])).astype(np.complex64)


def test_values_and_gradients(mode):
    op = Custom(turned, func_type="hybrid")

    def function(z, w):
        return op(z, w)

    z, w, weight = map(ms.Tensor, (Z, W, WEIGHT))
    np.testing.assert_allclose(mode(function)(z, w).asnumpy(), Z * W * (2 - 1j), 1e-6)

    def ours(z, w):
        return (op(z, w) * weight).sum()

    factor = ms.Tensor(np.full(4, 2 - 1j, np.complex64))

    def own(z, w):
        return (z * w * factor * weight).sum()

    found, expected = (mode(ms.grad(f, (0, 1)))(z, w) for f in (ours, own))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), 1e-5)
    np.testing.assert_allclose(found[0].asnumpy(), np.conj(W * (2 - 1j) * WEIGHT), 1e-5)
