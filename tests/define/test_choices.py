# ruff: noqa: F821 - the words of the loop language are no names of Python
"""Optional tensors and strings of loop kernels, in each host, with gradients."""

import numpy as np
import pytest

import polyop
from polyop.core.errors import SchemaError, UnsupportedError
from polyop.export import export

X, B = np.arange(6.0).reshape(2, 3), np.array([0.5, -2.0])


@polyop.kernel
def reduced(x, b: "Tensor | None" = None, mode: str = "mean"):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s += x[i, j] * x[i, j]
        if mode == "mean":
            s /= x.shape[1]
        elif mode == "root":
            s = sqrt(s)
        y[i] = s if b is None else s * b[i]
    return y


by_schema = polyop.operator("choices::by_schema(Tensor x, Tensor? b, str mode) -> Tensor", reduced)
custom = polyop.Custom(reduced, func_type="hybrid")  # a parameter with a default need not be registered
information = polyop.CustomRegOp("reduced").attr("mode", "required", "str").target("CPU").get_op_info()
registered = polyop.Custom(reduced, func_type="hybrid", reg_info=information)

CHOICES = [(b, mode) for b in (None, B) for mode in ("mean", "root")]


def test_the_schema():
    assert str(reduced.schema).endswith('reduced(Tensor x, Tensor? b=None, str mode="mean") -> Tensor')
    assert reduced(X).tolist() == reduced.python(X).tolist()
    with pytest.raises(polyop.PolyopError, match="mode is one of 'mean', 'root', but got 'max'"):
        reduced(X, mode="max")
    with pytest.raises(SchemaError, match="the default of the optional tensor b is None"):
        polyop.kernel(wrong_default).schema


def wrong_default(x, b=0.0):
    y = output_tensor(x.shape, x.dtype)
    if b is not None:
        y[0] = b[0]
    return y


@pytest.mark.slow(1)
@pytest.mark.parametrize(("b", "mode"), CHOICES)
def test_numpy(b, mode):
    expected = reduced.python(X, b, mode)
    np.testing.assert_allclose(reduced(X, b, mode), expected, rtol=1e-15)
    _, pull = reduced.vjp(X, b, mode)
    gradients = pull(np.ones(2))
    assert gradients[0].shape == X.shape and (gradients[1] is None) == (b is None)
    np.testing.assert_allclose(by_schema(X, b, mode), expected, rtol=1e-15)
    np.testing.assert_allclose(custom(X, b), reduced.python(X, b), rtol=1e-15)
    np.testing.assert_allclose(registered(X, b, mode), expected, rtol=1e-15)


@pytest.mark.slow(1)
@pytest.mark.parametrize(("b", "mode"), CHOICES)
def test_pytorch(b, mode):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = torch.tensor(X + 1, requires_grad=True)
    b = None if b is None else torch.tensor(b, requires_grad=True)
    assert torch.autograd.gradcheck(reduced, (x, b, mode)) and torch.autograd.gradgradcheck(
        reduced, (x, b, mode)
    )
    expected = reduced(x, b, mode)
    compiled = torch.compile(lambda x, b: reduced(x, b, mode), fullgraph=True, backend="aot_eager")
    gradients = []
    for run in (reduced, lambda x, b, _: compiled(x, b)):
        result = run(x, b, mode)
        assert torch.equal(result, expected)
        result.sum().backward()
        gradients += [x.grad.clone(), *([] if b is None else [b.grad.clone()])]
        x.grad = None
        if b is not None:
            b.grad = None
    half = len(gradients) // 2
    assert all(map(torch.equal, gradients[:half], gradients[half:]))
    batch = torch.vmap(lambda x: reduced(x, b, mode))(torch.stack([x, 2 * x]))
    assert torch.allclose(batch, torch.stack([expected, reduced(2 * x, b, mode)]))
    out, tangent = torch.func.jvp(lambda x: reduced(x, b, mode), (x.detach(),), (torch.ones_like(x),))
    assert torch.allclose(out, expected) and tangent.shape == out.shape


@pytest.mark.slow(1)
@pytest.mark.parametrize(("b", "mode"), CHOICES)
def test_jax(b, mode):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    x = jax.numpy.asarray(X + 1, "float32")
    arguments = (x,) if b is None else (x, jax.numpy.asarray(b, "float32"))

    def call(x, b=None):
        return reduced(x, b, mode)

    expected = reduced.python(X + 1, b, mode)
    np.testing.assert_allclose(jax.jit(call)(*arguments), expected, rtol=1e-6)
    for position in range(len(arguments)):
        loss = jax.jit(jax.grad(lambda *given: call(*given).sum(), argnums=position))
        shift = np.zeros_like(arguments[position]).astype(np.float64)
        shift.flat[1] = 1e-6
        given = [np.float64(one) for one in arguments]
        higher, lower = (
            call(*given[:position], given[position] + sign * shift, *given[position + 1 :])
            for sign in (1, -1)
        )
        slope = (higher - lower).sum() / 2e-6
        np.testing.assert_allclose(np.asarray(loss(*arguments)).flat[1], slope, rtol=1e-4)
    batch = jax.vmap(lambda x: call(x, *arguments[1:]))(jax.numpy.stack([x, x]))
    np.testing.assert_allclose(batch, [expected, expected], rtol=1e-6)


def test_paddle_and_dask():
    for name in ("paddle", "dask.array"):
        module = pytest.importorskip(name, reason=f"{name} is not installed")
        make = module.to_tensor if name == "paddle" else module.from_array
        for b, mode in CHOICES:
            result = np.asarray(reduced(make(X), None if b is None else make(b), mode))
            np.testing.assert_allclose(result, reduced.python(X, b, mode), rtol=1e-15)


def test_an_export_says_what_to_write():
    with pytest.raises(UnsupportedError, match=r"once for each choice of b.*(?s:.)*a kernel for each choice"):
        export([reduced], "unused.so", signatures={reduced.name: "float64[:,:], float64[:]"})
