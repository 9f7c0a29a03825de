"""The gradients that a caller of ``op.vjp`` gives: a kernel reads them by the shape and dtype of the output."""

import numpy as np
import pytest

import polyop
from polyop.core.errors import GradientError


@polyop.kernel
def columns(a, b):
    c = output_tensor((a.shape[0], b.shape[0]), a.dtype)  # noqa: F821
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            c[i, j] = a[i] * b[j]
    return c


def numpy(values, dtype="float32"):
    return np.asarray(values, dtype)


def torch(values, dtype="float32"):
    module = pytest.importorskip("torch", reason="PyTorch is not installed")
    return module.tensor(np.asarray(values, dtype))


def jax(values, dtype="float32"):
    module = pytest.importorskip("jax", reason="JAX is not installed")
    return module.numpy.asarray(np.asarray(values, dtype))


@pytest.fixture(params=[numpy, torch, jax], ids=lambda make: make.__name__)
def make(request):
    return request.param


def test_another_shape(make):
    _, pull = columns.vjp(make([1, 2]), make([1, 2, 3]))
    rule = r"columns: gradient of output 0: must have the output's shape \(2, 3\), but got \(1, 1\)"
    with pytest.raises(GradientError, match=rule):
        pull(make([[1]]))


def test_another_dtype_is_converted(make):
    """It was read as the output's: eight bytes for a number of four."""
    _, pull = columns.vjp(make([1, 2]), make([1, 2, 3]))
    for dtype in ("float64", "int32", "float16"):
        first, second = pull(make(np.ones((2, 3)), dtype))
        assert (first.tolist(), second.tolist()) == ([6, 6], [3, 3, 3])


def test_what_is_no_gradient_of_the_output(make):
    _, pull = columns.vjp(make([1, 2]), make([1, 2, 3]))
    with pytest.raises(GradientError, match="gradient of output 0: must be a tensor or None, but got list"):
        pull([[1, 1, 1], [1, 1, 1]])
    with pytest.raises(GradientError, match="gradient of output 0: must be real, as the output is"):
        pull(make(np.ones((2, 3)), "complex64"))
