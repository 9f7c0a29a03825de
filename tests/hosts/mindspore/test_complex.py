# ruff: noqa: F821 - the words of the language
"""Complex loop kernels in MindSpore, whose complex gradients follow PyTorch's convention, as its own operators do."""

import numpy as np
import pytest

from polyop import Custom

ms = pytest.importorskip("mindspore", reason="MindSpore is not installed")


def grown(z):
    y = output_tensor(z.shape, z.dtype)
    for i in range(z.shape[0]):
        y[i] = exp(z[i])
    return y


def lengths(z):
    y = output_tensor(z.shape, "float32")
    for i in range(z.shape[0]):
        y[i] = abs(z[i])
    return y


Z = np.array([1 + 2j, 3 - 1j, -0.5j], np.complex64)


@pytest.mark.parametrize(
    ("function", "own"), [(grown, ms.ops.exp), (lengths, ms.ops.abs)], ids=["exp", "abs"]
)
def test_values_and_gradients_are_those_of_its_own_operators(function, own, mode):
    op = Custom(function, func_type="hybrid")

    def ours(z):
        return op(z)

    def theirs(z):
        return own(z)

    z = ms.Tensor(Z)
    np.testing.assert_allclose(mode(ours)(z).asnumpy(), theirs(z).asnumpy(), 1e-6)
    found, expected = (ms.grad(mode(f))(z) for f in (ours, theirs))
    assert found.dtype == ms.complex64
    np.testing.assert_allclose(found.asnumpy(), expected.asnumpy(), 1e-5)
