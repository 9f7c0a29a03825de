# ruff: noqa: F821 - kernels, whose words are no names here
"""Inputs whose gradient is an output's gradient, unchanged: when it is shared, and when it must not be."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from polyop import Custom
from polyop.loops.derive.forms import adjoint
from polyop.loops.derive.shared_gradients import shared_gradients
from polyop.loops.frontend.parse import parse


def residual(x, z):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] + z[i, j] * z[i, j]
    return y


def added(x, z):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] + z[i, j]
    return y


def two_outputs(x, z):
    y = output_tensor(x.shape, x.dtype)
    w = output_tensor(z.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j]
            w[i, j] = z[i, j] * 1
    return y, w


def crossed(x, z):
    y = output_tensor(x.shape, x.dtype)
    w = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = z[i, j] - 3
            w[i, j] = x[i, j] + sin(z[i, j])
    return y, w


def part(x, z):
    """As large as z, which may be smaller than x."""
    y = output_tensor(z.shape, x.dtype)
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            y[i, j] = x[i, j] * 1 + cos(z[i, j])
    return y


def inner(x, z):
    y = output_tensor(x.shape, x.dtype)
    for i in range(1, x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] + z[i, j] * z[i, j]
    return y


def turned(x, z):
    y = output_tensor((x.shape[1], x.shape[0]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j, i] = x[i, j] + z[i, j] * 2
    return y


def reversed_rows(x, z):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[x.shape[0] - 1 - i, j] = x[i, j] + z[i, j] * 2
    return y


def twice(x, z):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] + z[i, j] * 2 + x[i, j]
    return y


def both_outputs(x, z):
    y = output_tensor(x.shape, x.dtype)
    w = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] + z[i, j] * 2
            w[i, j] = x[i, j]
    return y, w


def broadcast(x, z):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] + z[i, 0]
    return y


def sometimes(x, z):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if z[i, j] > 0:
                y[i, j] = x[i, j]
    return y


def widened(x, z):
    y = output_tensor(x.shape, "float32")
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] + z[i, j] * 2
    return y


def triangle(x, z):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(min(i, x.shape[1])):
            y[i, j] = x[i, j] + z[i, j] * 2
    return y


PLAIN = {
    residual: lambda x, z: x + z * z,
    added: lambda x, z: x + z,
    two_outputs: lambda x, z: (x * 1, z * 1),
    crossed: lambda x, z: (z - 3, x + torch.sin(z)),
    part: lambda x, z: x[: z.shape[0], : z.shape[1]] + torch.cos(z),
    inner: lambda x, z: torch.cat([x[:1] * 0, x[1:] + z[1:] * z[1:]]),
    turned: lambda x, z: (x + z * 2).T,
    reversed_rows: lambda x, z: (x + z * 2).flip(0),
    twice: lambda x, z: 2 * x + z * 2,
    both_outputs: lambda x, z: (x + z * 2, x * 1),
    broadcast: lambda x, z: x + z[:, :1],
    sometimes: lambda x, z: x * (z > 0),
    triangle: lambda x, z: (x + z * 2).tril(-1),
}
HANDED = {residual: {0: 0}, added: {0: 0, 1: 0}, two_outputs: {0: 0, 1: 1}, crossed: {0: 1}, part: {0: 0}}
HANDED |= {broadcast: {0: 0}}


def hybrid(function):
    return Custom(function, func_type="hybrid")


def tensors(n=5, m=4, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(n, m, generator=generator, dtype=dtype).requires_grad_() for _ in range(2)]


def listed(found):
    return list(found) if isinstance(found, tuple) else [found]


def weights(found):
    return [torch.randn(y.shape, dtype=y.dtype, generator=torch.Generator().manual_seed(3)) for y in found]


@pytest.mark.parametrize("function", PLAIN)
def test_which_gradients_are_shared(function):
    typed = parse(function, [("float64", 2), ("float64", 2)], {})
    kernel = adjoint(typed, (True,) * len(typed.outputs)).kernel
    found = {number: row.source for number, row in shared_gradients(kernel).items()}
    expected = HANDED.get(function, {})
    assert found == {k: f"d_{typed.outputs[output]}" for k, output in expected.items()}


def test_another_dtype_is_not_shared():
    kernel = adjoint(parse(widened, [("float16", 2), ("float32", 2)], {}), (True,)).kernel
    assert shared_gradients(kernel) == {}
    x = torch.ones(3, 2, dtype=torch.float16, requires_grad=True)
    hybrid(widened)(x, torch.ones(3, 2)).backward(torch.full((3, 2), 0.1))
    assert x.grad.dtype == torch.float16
    assert torch.equal(x.grad, torch.full((3, 2), 0.1).half())


@pytest.mark.slow(6)
@pytest.mark.parametrize("size", [(5, 4), (1, 1), (1, 7), (0, 3), (3, 0)])
@pytest.mark.parametrize("wanted", [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("function", PLAIN)
def test_gradients(function, wanted, size):
    if function is broadcast and size[1] == 0:
        size = (0, 0)
    given = [t.detach().requires_grad_(flag) for t, flag in zip(tensors(*size), wanted, strict=True)]
    real = [t for t in given if t.requires_grad]
    found, expected = listed(hybrid(function)(*given)), listed(PLAIN[function](*given))
    kept = [k for k, y in enumerate(expected) if y.requires_grad]
    above = weights(expected)
    ours, theirs = (
        torch.autograd.grad([rows[k] for k in kept], real, [above[k] for k in kept], allow_unused=True)
        if kept
        else [None] * len(real)
        for rows in (found, expected)
    )
    for one, other, x in zip(ours, theirs, real, strict=True):
        made_of = [torch.zeros_like(x) if g is None else g for g in (one, other)]
        torch.testing.assert_close(*made_of)


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("function", [two_outputs, crossed, both_outputs])
def test_one_output_alone(function, number):
    x, z = tensors()
    found, expected = listed(hybrid(function)(x, z))[number], listed(PLAIN[function](x, z))[number]
    (above,) = weights([expected])
    ours, theirs = (torch.autograd.grad(y, (x, z), above, allow_unused=True) for y in (found, expected))
    for one, other in zip(ours, theirs, strict=True):
        zero = torch.zeros_like(x)
        torch.testing.assert_close(zero if one is None else one, zero if other is None else other)


@pytest.mark.parametrize(("n", "m"), [(3, 4), (5, 2), (5, 4), (1, 1)])
def test_a_part_is_no_whole(n, m):
    x, z = tensors()
    z = z[:n, :m].detach().requires_grad_()
    above = torch.randn(n, m, dtype=torch.float64)
    ours, theirs = (torch.autograd.grad(f(x, z), (x, z), above) for f in (hybrid(part), PLAIN[part]))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.slow(1)
@pytest.mark.parametrize("function", [residual, added, two_outputs, crossed, broadcast])
def test_differences_and_double_backward(function):
    x, z = tensors(3, 2)
    assert torch.autograd.gradcheck(hybrid(function), (x, z))
    assert torch.autograd.gradgradcheck(hybrid(function), (x, z))


def test_no_operator_runs_for_a_shared_gradient():
    op = hybrid(added)
    x, z = tensors()
    y = op(x, z)
    above = torch.randn_like(y)
    first, second = torch.autograd.grad(y, (x, z), above)
    assert first.data_ptr() == second.data_ptr() == above.data_ptr()
    assert torch.equal(first, above)


def test_gradients_that_accumulate_do_not_share():
    """Two leaves get the same tensor; what is added to one is not added to the other."""
    op, (x, z) = hybrid(added), tensors()
    above = torch.ones_like(x)
    for _ in range(3):
        op(x, z).backward(above)
    op(x, x.detach()).backward(above)
    assert torch.equal(above, torch.ones_like(x))
    assert torch.equal(x.grad, torch.full_like(x, 4))
    assert torch.equal(z.grad, torch.full_like(x, 3))
    x.grad.mul_(2)
    assert torch.equal(z.grad, torch.full_like(x, 3))


def test_one_tensor_in_both_places():
    op, (x, _) = hybrid(added), tensors()
    op(x, x).sum().backward()
    assert torch.equal(x.grad, torch.full_like(x, 2))


def test_an_expanded_gradient_is_usable():
    op, (x, z) = hybrid(added), tensors()
    op(x, z).sum().backward()
    x.grad += 1
    z.grad.zero_()
    assert torch.equal(x.grad, torch.full_like(x, 2))
    assert torch.equal(z.grad, torch.zeros_like(x))


def test_hooks_and_a_graph_that_is_kept():
    op, (x, z) = hybrid(residual), tensors()
    seen = []
    x.register_hook(lambda g: seen.append(g.clone()) or g * 2)
    y = op(x, z)
    above = torch.randn_like(y)
    y.backward(above, retain_graph=True)
    y.backward(above)
    assert all(torch.equal(g, above) for g in seen)
    assert len(seen) == 2
    torch.testing.assert_close(x.grad, 4 * above)
    torch.testing.assert_close(z.grad, 4 * above * z.detach())


@pytest.mark.slow(2)
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("function", [residual, added, two_outputs, part])
def test_compiled_by_torch(function, dynamic):
    torch.compiler.reset()
    op = hybrid(function)
    call = torch.compile(lambda *given: op(*given), backend="aot_eager", dynamic=dynamic, fullgraph=True)
    for n, m in ((5, 4), (6, 3)):
        x, z = tensors(n, m)
        if function is part:
            z = z[: n - 1].detach().requires_grad_()
        expected = listed(PLAIN[function](x, z))
        above = weights(expected)
        ours, theirs = (torch.autograd.grad(ys, (x, z), above) for ys in (listed(call(x, z)), expected))
        for one, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(one, other)


@pytest.mark.slow(3)
@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0), (1, 2)])
@pytest.mark.parametrize("function", [residual, added, crossed])
def test_batches(function, dims):
    given = [
        torch.randn(4, 4, 4, dtype=torch.float64) if d is not None else torch.randn(4, 4).double()
        for d in dims
    ]

    def slopes(f):
        return torch.func.grad(lambda *xs: sum((y * y).sum() for y in listed(f(*xs))), argnums=(0, 1))

    ours, theirs = (torch.vmap(slopes(f), in_dims=dims)(*given) for f in (hybrid(function), PLAIN[function]))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("function", [residual, added])
def test_jax(function):
    op = hybrid(function)
    x, z = (jnp.asarray(t.detach().numpy(), jnp.float32) for t in tensors())
    plain = {residual: lambda x, z: x + z * z, added: lambda x, z: x + z}[function]

    def slopes(f):
        return jax.grad(lambda x, z: jnp.sum(f(x, z) ** 3), argnums=(0, 1))

    def slopes_of_slopes(f):
        return jax.grad(lambda x, z: sum(jnp.sum(g**2) for g in slopes(f)(x, z)), argnums=(0, 1))

    for made_of in (slopes, slopes_of_slopes):
        for call in (made_of, lambda f, m=made_of: jax.jit(m(f))):
            rows = zip(call(op)(x, z), call(plain)(x, z), strict=True)
            assert all(np.allclose(one, other, rtol=1e-4, atol=1e-4) for one, other in rows)
    xs, zs = jnp.stack([x, 2 * x]), jnp.stack([z, z + 1])
    rows = zip(jax.vmap(slopes(op))(xs, zs), jax.vmap(slopes(plain))(xs, zs), strict=True)
    assert all(np.allclose(one, other, rtol=1e-4, atol=1e-4) for one, other in rows)
