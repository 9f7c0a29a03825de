"""Forward and backward, from each framework that is installed."""

import custom_ops
import numpy as np
import pytest

X = np.random.default_rng(0).standard_normal((3, 4), np.float32)
Y = np.random.default_rng(1).standard_normal((3, 4), np.float32)


def test_numpy():
    x = X.copy()
    out, pullback = custom_ops.custom_ops_lib.add_custom.vjp(x, Y)
    assert np.array_equal(custom_ops.add_custom(x, Y), X + Y)
    assert np.array_equal(out, X + Y)
    assert np.array_equal(x, X)
    assert [grad.tolist() for grad in pullback(2 * X)] == [(2 * X).tolist()] * 2


def test_torch():
    torch = pytest.importorskip("torch")
    x, y = (torch.tensor(value, requires_grad=True) for value in (X, Y))
    out = custom_ops.add_custom(x, y)
    out.backward(torch.tensor(2 * X))
    assert torch.equal(out, x + y)
    assert torch.equal(x.grad, torch.tensor(2 * X))
    assert torch.equal(y.grad, torch.tensor(2 * X))
    meta = torch.ops.myops.my_op(x.detach().to("meta"), y.detach().to("meta"))
    assert meta.device.type == "meta"
    assert meta.shape == (3, 4)


def test_jax():
    jax = pytest.importorskip("jax")
    x, y = jax.numpy.asarray(X), jax.numpy.asarray(Y)
    assert np.array_equal(custom_ops.add_custom(x, y), X + Y)
    grads = jax.grad(lambda x, y: (custom_ops.add_custom(x, y) * x).sum(), (0, 1))(x, y)
    assert np.allclose(grads[0], 2 * X + Y)
    assert np.allclose(grads[1], X)
