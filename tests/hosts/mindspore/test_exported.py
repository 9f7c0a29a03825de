"""The operators of an exported library in both modes of MindSpore, with their gradients."""

import numpy as np
import pytest

import polyop
from polyop.export import export

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@polyop.kernel(name="exported_ms::scale")
def scale(x, factor: float = 2.0):
    y = output_tensor(x.shape, x.dtype)  # noqa: F821 - a word of the language
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * x[i, j] * factor
    return y


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("export") / "libms.so"
    export([scale], path, signatures={"exported_ms::scale": ["float32[:,:], float"]})
    return polyop.load_library(path, namespaces={"exported_ms": "loaded_ms"})


def test_values_and_gradients(mode, library):
    import mindspore as ms

    def function(x):
        return library.scale(x, 3.0)

    np.testing.assert_array_equal(mode(function)(ms.Tensor(X)).asnumpy(), 3 * X**2)
    np.testing.assert_array_equal(ms.grad(mode(function))(ms.Tensor(X)).asnumpy(), 6 * X)
