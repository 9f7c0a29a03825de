"""Batches of operators with a gradient of their own: one call for all samples, and that gradient for each."""

# ruff: noqa: F821 - the words of the language

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import polyop
from polyop import Custom
from polyop.call.explain import explain


def scaled(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = sin(x[i, j]) * w[j]
    return y


def of_the_author(x, w, out, dout):
    """Not the derivative: 3 times a product, so that it is seen which one was asked."""
    return 3 * x * dout, (out * dout).sum(0)


def expected(x, w, dout):
    return 3 * x * dout, (np.sin(x) * w * dout).sum(0)


def with_rule(rule=of_the_author):
    return Custom(scaled, func_type="hybrid", bprop=rule)


class Calls(TorchDispatchMode):
    """What runs of polyop's operators."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace not in ("aten", "prim", "profiler"):
            self.names.append(func._schema.name.partition("__")[2])
        return func(*args, **(kwargs or {}))


def arrays(count=3):
    random = np.random.default_rng(0)
    return random.normal(size=(count, 2, 4)), random.normal(size=(count, 4))


@pytest.mark.slow(4)
@pytest.mark.parametrize(("x_dim", "w_dim"), [(0, 0), (0, None), (2, 1), (None, 0), (1, None)])
def test_torch_calls_it_once(x_dim, w_dim):
    op = with_rule()
    xs, ws = arrays()
    x = torch.tensor(xs[0] if x_dim is None else np.moveaxis(xs, 0, x_dim))
    w = torch.tensor(ws[0] if w_dim is None else np.moveaxis(ws, 0, w_dim))
    with Calls() as calls:
        results = torch.vmap(op, in_dims=(x_dim, w_dim))(x, w)
    assert calls.names == ["batched"]
    rows = [(xs[0 if x_dim is None else k], ws[0 if w_dim is None else k]) for k in range(3)]
    np.testing.assert_allclose(results, np.stack([np.sin(a) * b for a, b in rows]))


@pytest.mark.slow(1)
@pytest.mark.parametrize(("x_dim", "w_dim"), [(0, 0), (0, None), (2, 1), (None, 0), (1, None)])
@pytest.mark.parametrize("framework", ["torch", "jax", "jax.jit"])
def test_the_gradient_of_a_batch_is_the_given_one_of_each_sample(framework, x_dim, w_dim):
    op = with_rule()
    xs, ws = arrays()
    x = xs[0] if x_dim is None else np.moveaxis(xs, 0, x_dim)
    w = ws[0] if w_dim is None else np.moveaxis(ws, 0, w_dim)
    dout = np.random.default_rng(1).normal(size=xs.shape)
    if framework == "torch":
        gradient = torch.func.grad(
            lambda a, b: (torch.vmap(op, (x_dim, w_dim))(a, b) * torch.tensor(dout)).sum(), (0, 1)
        )
        results = gradient(torch.tensor(x), torch.tensor(w))
    else:
        with jax.enable_x64(True):
            gradient = jax.grad(lambda a, b: (jax.vmap(op, (x_dim, w_dim))(a, b) * dout).sum(), (0, 1))
            results = (jax.jit(gradient) if framework == "jax.jit" else gradient)(
                jnp.asarray(x), jnp.asarray(w)
            )
    rows = [expected(xs[0 if x_dim is None else k], ws[0 if w_dim is None else k], dout[k]) for k in range(3)]
    for grad, dim, parts in zip(results, (x_dim, w_dim), zip(*rows, strict=True), strict=True):
        wanted = np.sum(parts, 0) if dim is None else np.stack(parts, dim)
        np.testing.assert_allclose(np.asarray(grad), wanted, rtol=1e-12, atol=1e-12)


def test_backward_through_a_batch():
    op = with_rule()
    xs, ws = arrays()
    x, w = (torch.tensor(a, requires_grad=True) for a in (xs, ws[0]))
    torch.vmap(op, (0, None))(x, w).sum().backward()
    rows = [expected(a, ws[0], np.ones_like(a)) for a in xs]
    np.testing.assert_allclose(x.grad, np.stack([r[0] for r in rows]))
    np.testing.assert_allclose(w.grad, sum(r[1] for r in rows))


def test_a_batch_of_gradients():
    op = with_rule()
    xs, ws = arrays()
    gradient = torch.func.grad(lambda a, b: op(a, b).sum())
    results = torch.func.vmap(gradient, (0, None))(torch.tensor(xs), torch.tensor(ws[0]))
    np.testing.assert_allclose(results, 3 * xs)
    with jax.enable_x64(True):
        gradient = jax.grad(lambda a, b: op(a, b).sum())
        results = jax.vmap(gradient, (0, None))(jnp.asarray(xs), jnp.asarray(ws[0]))
        np.testing.assert_allclose(results, 3 * xs)


def test_a_batch_of_batches_and_its_second_derivative():
    op = with_rule()
    xs, ws = arrays(6)
    x, w = torch.tensor(xs.reshape(2, 3, 2, 4)), torch.tensor(ws[:3])
    twice = torch.vmap(torch.vmap(op), in_dims=(0, None))
    torch.testing.assert_close(twice(x, w), x.sin() * w[None, :, None, :])
    first = torch.func.grad(lambda a: twice(a, w).sum())
    torch.testing.assert_close(first(x), 3 * x)
    second = torch.func.grad(lambda a: (first(a) ** 2).sum())(x)
    torch.testing.assert_close(second, 18 * x)


def test_no_samples():
    op = with_rule()
    x, w = torch.ones(0, 2, 4, requires_grad=True), torch.ones(4, requires_grad=True)
    y = torch.vmap(op, (0, None))(x, w)
    assert y.shape == (0, 2, 4)
    y.sum().backward()
    assert x.grad.shape == (0, 2, 4)
    assert w.grad.tolist() == [0, 0, 0, 0]


def test_a_rule_that_cannot_be_batched_runs_for_each_sample_and_is_said():
    def rule(x, w, out, dout):
        return x * (3 if float(dout.sum()) > 0 else -3), None

    op = with_rule(rule)
    xs, ws = arrays()
    x = torch.tensor(xs, requires_grad=True)
    said = "the gradient of a batch runs its rule once per sample, as vmap of it fails"
    with pytest.warns(polyop.FallbackWarning, match=said):
        torch.vmap(op, (0, None))(x, torch.tensor(ws[0])).sum().backward()
    np.testing.assert_allclose(x.grad, 3 * xs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.vmap(op, (0, None))(x, torch.tensor(ws[0])).sum().backward()


def powered(x, n):
    y = output_tensor(x.shape, x.dtype)
    z = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = pow(x[i], n)
        z[i] = x[i] * n
    return y, z


def test_several_outputs_and_attributes():
    op = polyop.operator(
        "given::powered(Tensor x, *, float n) -> (Tensor, Tensor)",
        polyop.kernel(powered),
        gradient=lambda x, n, out, dout: (dout[0] * 10 + dout[1] * n, None),
    )
    x = torch.arange(1.0, 7.0).reshape(2, 3).requires_grad_()
    y, z = torch.vmap(lambda row: op(row, n=2.0))(x)
    torch.testing.assert_close(y, x**2)
    (y.sum() * 2 + z.sum()).backward()
    assert x.grad.tolist() == [[22.0] * 3] * 2


def test_a_batch_rule_that_is_given_stays():
    asked = []

    def batch(dims, inputs):
        asked.append(dims)
        return inputs[0] * 5, dims[0]

    op = polyop.operator(
        "given::own_batch(Tensor x, Tensor w) -> Tensor",
        polyop.kernel(scaled),
        gradient=of_the_author,
        batch=batch,
    )
    torch.testing.assert_close(
        torch.vmap(op, (0, None))(torch.ones(3, 2, 4), torch.ones(4)), torch.ones(3, 2, 4) * 5
    )
    assert asked == [(0, None)]


def test_nothing_else_is_derived_of_a_given_gradient():
    op = with_rule()
    op(np.ones((2, 4)), np.ones(4))
    text = explain(op)
    assert "gradient    given" in text
    assert "forward     the gradient rule, transposed" in text
    assert "batching    derived: one call for all samples" in text


def test_forward_mode_of_a_batch_transposes_the_given_rule():
    op = with_rule(lambda x, w, out, dout: (3 * x * dout, None))
    xs, ws = arrays()
    x, w, t = torch.tensor(xs), torch.tensor(ws[0]), torch.ones(3, 2, 4, dtype=torch.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # TorchScript, in PyTorch's own forward mode
        moved = torch.func.jvp(lambda a: torch.vmap(op, (0, None))(a, w), (x,), (t,))[1]
    torch.testing.assert_close(moved, 3 * x)
    with jax.enable_x64(True):
        own = jnp.asarray(ws[0])
        moved = jax.jvp(
            lambda a: jax.vmap(op, (0, None))(a, own), (jnp.asarray(xs),), (jnp.asarray(t.numpy()),)
        )
        np.testing.assert_allclose(moved[1], 3 * xs)
