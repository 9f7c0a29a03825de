"""Rules in the form of torch.library: the same functions as PyTorch's own operator has, in every framework."""

import numpy as np
import pytest

import polyop

jax = pytest.importorskip("jax")
torch = pytest.importorskip("torch")

X = np.array([[1.0, -2.0, 0.5], [3.0, 0.25, -1.0]])
W = np.array([2.0, 0.5, -1.0])


def setup_context(ctx, inputs, output):
    x, w, power = inputs
    ctx.save_for_backward(x, w)
    ctx.power = power


def backward(ctx, grad):
    x, w = ctx.saved_tensors
    return grad * ctx.power * x ** (ctx.power - 1) * w, (grad * x**ctx.power).sum(0), None


def over_samples(info, in_dims, x, w, power):
    x_axis, w_axis, _ = in_dims
    rows = [
        weighted(
            x if x_axis is None else take(x, x_axis, i), w if w_axis is None else take(w, w_axis, i), power
        )
        for i in range(info.batch_size)
    ]
    return torch.stack(rows), 0


def take(x, axis, i):
    return x.select(axis, i)


lib = polyop.Library("torch_rules")
lib.define("weighted(Tensor x, Tensor w, int power=2) -> Tensor")
lib.impl("weighted", lambda x, w, power: x**power * w)
lib.register_fake("weighted", "x")
lib.register_autograd("weighted", backward, setup_context=setup_context)
lib.register_vmap("weighted", over_samples)
weighted = lib.weighted


@torch.library.custom_op("torch_rules_of_torch::weighted", mutates_args=())
def of_torch(x: torch.Tensor, w: torch.Tensor, power: int) -> torch.Tensor:
    return x**power * w


of_torch.register_autograd(backward, setup_context=setup_context)


def gradients(function, power):
    x, w = (torch.tensor(a, requires_grad=True) for a in (X, W))
    return torch.autograd.grad(function(x, w, power).sin().sum(), (x, w))


@pytest.mark.parametrize("power", [2, 3])
def test_the_gradients_of_torch(power):
    for own, expected in zip(gradients(weighted, power), gradients(of_torch, power), strict=True):
        torch.testing.assert_close(own, expected)


def test_the_same_in_jax_and_numpy():
    expected = gradients(of_torch, 3)
    with jax.enable_x64(True):
        own = jax.grad(lambda x, w: jax.numpy.sin(weighted(x, w, 3)).sum(), (0, 1))(jax.numpy.asarray(X), W)
    _, pull = weighted.vjp(X, W, 3)
    by_hand = pull(np.cos(X**3 * W))
    for ours, numpy, theirs in zip(own, by_hand, expected, strict=False):
        np.testing.assert_allclose(np.asarray(ours), theirs.numpy())
        np.testing.assert_allclose(numpy, theirs.numpy())


def test_a_gradient_is_differentiated_again():
    torch.autograd.gradgradcheck(
        lambda x, w: weighted(x, w, 3), [torch.tensor(a, requires_grad=True) for a in (X, W)]
    )


@pytest.mark.parametrize("in_dims", [(0, None), (1, None), (0, 0), (None, 0)])
def test_vmap(in_dims):
    x = torch.tensor(X) if in_dims[0] is None else torch.tensor(np.stack([X, X + 1], in_dims[0]))
    w = torch.tensor(W) if in_dims[1] is None else torch.tensor(np.stack([W, W + 1]))
    result = torch.func.vmap(lambda x, w: weighted(x, w, 3), in_dims)(x, w)
    torch.testing.assert_close(result, torch.func.vmap(lambda x, w: x**3 * w, in_dims)(x, w))


def test_as_decorators():
    one = polyop.Library("torch_rules_decorated")

    @one.define("cubed(Tensor x) -> Tensor", dims="... -> ...")
    def cubed(x):
        return x**3

    def keep(ctx, inputs, output):
        (ctx.x,) = inputs

    @one.register_autograd("cubed", setup_context=keep)
    def of_cubed(ctx, grad):
        return 3 * ctx.x**2 * grad

    x = torch.tensor(X, requires_grad=True)
    (gradient,) = torch.autograd.grad(one.cubed(x).sum(), x)
    assert gradient.tolist() == (3 * X**2).tolist()


def test_a_gradient_too_few_is_named():
    one = polyop.Library("torch_rules_short")
    one.define("f(Tensor x, Tensor y) -> Tensor")(lambda x, y: x + y)
    one.register_fake("f", "x")

    @one.register_autograd("f")
    def of_f(ctx, grad):
        return grad

    with pytest.raises(
        polyop.PolyopError, match=r"of_f: must return a gradient or None for each of the 2 inputs.*1 values"
    ):
        one.f.vjp(X, X)[1](X)
