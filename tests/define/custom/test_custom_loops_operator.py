"""A loop nest as the kernel of ``polyop.operator``: the schema and the function must agree."""

import numpy as np
import pytest

import polyop
from polyop.testing import check

# ruff: noqa: F821 - the words of the language

X = np.arange(3, dtype=np.float32)


@polyop.kernel
def scaled(x, alpha, n=2):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * alpha + n
    return y


@polyop.kernel
def incremented(x):
    for i in range(x.shape[0]):
        x[i] = x[i] + 1
    return x


@pytest.mark.slow
def test_values_and_gradients():
    op = polyop.operator(
        "loops::scaled(Tensor x, float alpha, int n=2) -> Tensor",
        scaled,
        gradient=lambda x, alpha, n, out, dout: (dout * alpha, None, None),
        reference=scaled.python,
    )
    np.testing.assert_array_equal(op(X, 3.0), X * 3 + 2)
    np.testing.assert_array_equal(op(X, n=1, alpha=3.0), X * 3 + 1)
    np.testing.assert_array_equal(op.vjp(X, 3.0)[1](X)[0], X * 3)
    assert "int n" in str(op.schema)
    assert "scaled" in op.source()
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    assert op.torch(torch.tensor(X), 3.0).tolist() == [2, 5, 8]
    assert check(op, X, alpha=0.5).ok


def test_in_place():
    op = polyop.operator("loops::incremented(Tensor(a!) x) -> Tensor(a!)", incremented)
    x = X.copy()
    assert op(x) is x
    assert x.tolist() == [1, 2, 3]


CONTRADICTIONS = [
    (
        "Tensor x, Tensor y, float alpha, int n=2) -> Tensor",
        scaled,
        "has tensors 2, and the function scaled has 1",
    ),
    (
        "Tensor x, float alpha, int n=2) -> (Tensor, Tensor)",
        scaled,
        "has outputs 2, and the function scaled has 1",
    ),
    (
        "Tensor(a!) x, float alpha, int n=2) -> Tensor(a!)",
        scaled,
        "in place {0: 0}, and the function scaled has {}",
    ),
]


def test_a_schema_without_writes_makes_the_kernel_copy_first():
    op = polyop.operator("loops::incremented_copy(Tensor x) -> Tensor", incremented)
    x = np.arange(4.0)
    assert op(x).tolist() == incremented.python(x.copy()).tolist()
    assert x.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("schema", "function", "message"), CONTRADICTIONS)
def test_a_schema_that_contradicts_the_function(schema, function, message):
    with pytest.raises(polyop.PolyopError) as excinfo:
        polyop.operator(f"loops::wrong({schema}", function)
    assert message in str(excinfo.value)
    assert "test_custom_loops_operator.py:" in str(excinfo.value)


def test_a_misspelt_attribute():
    with pytest.raises(
        polyop.PolyopError, match=r"has attributes \['beta'\], and the function scaled has \['alpha'\]"
    ):
        polyop.operator("loops::misspelt(Tensor x, float beta) -> Tensor", scaled)
