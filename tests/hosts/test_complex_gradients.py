"""A gradient rule that returns complex numbers for a real input is wrong, and every host says so."""

import types

import numpy as np
import pytest

import polyop
from polyop.core.errors import GradientError

X = np.array([1.0, 2.0, 3.0], np.float32)
WORDS = r"gradient of x: the gradient rule must return real numbers, as x is, but got \S*complex64"


def operator(name, gradient=lambda x, out, d: (d * 1j,)):
    return polyop.operator(
        f"complex_gradients::{name}(Tensor x) -> Tensor", lambda x: x * 2, infer="x", gradient=gradient
    )


def refused(pull):
    with pytest.raises(GradientError, match=WORDS) as caught:
        pull()
    assert "test_complex_gradients.py:" in str(caught.value)  # the rule


def test_numpy():
    _, pull = operator("numpy").vjp(X)
    refused(lambda: pull(X))


def test_dask():
    array = pytest.importorskip("dask.array", reason="dask is not installed")
    _, pull = operator("dask").vjp(array.from_array(X))
    refused(lambda: pull(array.from_array(X)))


@pytest.mark.parametrize("reads", ["x, out", "x, _"])
def test_pytorch(reads):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    rule = (lambda x, out, d: (d * 1j * out,)) if reads == "x, out" else (lambda x, out, d: (d * 1j * x,))
    op = operator(f"torch_{len(reads)}", rule)
    x = torch.tensor(X, requires_grad=True)
    refused(op(x).sum().backward)
    _, pull = op.vjp(x.detach())
    refused(lambda: pull(x.detach()))
    compiled = torch.compile(op, backend="aot_eager", fullgraph=True)
    with pytest.raises(Exception, match=WORDS):
        compiled(torch.tensor(X, requires_grad=True)).sum().backward()


def test_jax():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    op = operator("jax")
    for transform in (jax.grad, lambda f: jax.jit(jax.grad(f)), jax.jacfwd):
        refused(lambda transform=transform: transform(lambda v: op(v).sum())(jax.numpy.asarray(X)))


def test_paddle():
    paddle = pytest.importorskip("paddle", reason="Paddle is not installed")
    x = paddle.to_tensor(X, stop_gradient=False)
    with pytest.raises(Exception, match=WORDS):  # Paddle makes it an OSError
        operator("paddle")(x).sum().backward()


def test_the_check_of_a_compiled_graph_of_mindspore():
    """It knows dtypes alone, as MindSpore prints them."""
    from polyop.call.rule import check_real

    op = operator("mindspore").operator
    real, number = (types.SimpleNamespace(dtype=name) for name in ("Float32", "Complex64"))
    check_real(op, "x", real, real)
    check_real(op, "x", real, number)
    check_real(op, "x", number, number)
    with pytest.raises(GradientError, match="must return real numbers, as x is, but got Complex64"):
        check_real(op, "x", number, real)


def test_items_of_a_list_are_named():
    op = polyop.operator(
        "complex_gradients::items(Tensor[] xs) -> Tensor",
        lambda xs: xs[0] + xs[1],
        infer=lambda xs: polyop.Spec(xs[0].shape, xs[0].dtype),
        gradient=lambda xs, out, d: ((d, d * 1j),),
    )
    _, pull = op.vjp((X, X))
    with pytest.raises(GradientError, match=r"gradient of xs\[1\]: the gradient rule must return real"):
        pull(X)


def test_complex_inputs_and_the_real_part_are_right():
    gradient = lambda x, z, out, d: ((d * z.conj()).real, d * x)  # noqa: E731
    op = polyop.operator(
        "complex_gradients::product(Tensor x, Tensor z) -> Tensor",
        lambda x, z: x * z,
        infer="z",
        gradient=gradient,
    )
    z = (X + 2j).astype(np.complex64)
    dx, dz = op.vjp(X, z)[1](z)
    np.testing.assert_allclose(dx, np.abs(z) ** 2)
    np.testing.assert_allclose(dz, z * X)
