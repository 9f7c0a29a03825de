"""Subclasses of NumPy's array are plain arrays in kernels and gradient rules."""

import numpy as np
import pytest

import polyop

X = np.arange(4, dtype=np.float32).reshape(2, 2)


@pytest.fixture(scope="module")
def squares():
    """Return operators that square by a Python function and by C."""
    code = """int square(int n, void **p, int *ndims, long **shapes, const char **dtypes, void *s, void *e) {
      for (long i = 0; i < shapes[0][0] * shapes[0][1]; ++i)
        ((float *)p[1])[i] = ((float *)p[0])[i] * ((float *)p[0])[i];
      return 0;
    }"""
    options = {"infer": "x", "gradient": lambda x, out, dout: (2 * x * dout,)}
    kernels = {
        "python": lambda x: x * x,
        "c": polyop.source(code=code, function="square", language="c", dtypes=["float32"]),
    }
    names = {kind: f"subclasses::{kind}(Tensor x) -> Tensor" for kind in kernels}
    return [polyop.operator(names[kind], kernel, **options) for kind, kernel in kernels.items()]


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_matrix_is_an_array(squares, order):
    for square in squares:
        x = np.asarray(X, order=order).view(np.matrix)
        result, pull = square.vjp(x)
        for value, expected in ((square(x), X * X), (result, X * X), (pull(X.view(np.matrix))[0], 2 * X * X)):
            assert type(value) is np.ndarray
            np.testing.assert_array_equal(value, expected)


def test_a_file_in_memory_is_read_and_written(squares, tmp_path):
    x = np.memmap(tmp_path / "x.bin", np.float32, "w+", shape=(2, 2))
    x[:] = X
    for square in squares:
        np.testing.assert_array_equal(square(x), X * X)
    double_ = polyop.operator("subclasses::double_(Tensor(a!) x) -> ()", lambda x: np.multiply(x, 2, out=x))
    double_(x)
    np.testing.assert_array_equal(np.fromfile(tmp_path / "x.bin", np.float32), 2 * X.ravel())
