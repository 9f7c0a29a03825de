"""Complex loop kernels in PyTorch: gradients, tangents and batches beside the same function of torch."""

import numpy as np
import pytest
import torch

import polyop
from loop_samples import complex_kernels

ROWS = complex_kernels.ROWS
IDS = [row.kernel.__name__ for row in ROWS]


def several(value):
    return value if isinstance(value, tuple) else (value,)


def noise(value, random):
    made = random.normal(size=tuple(value.shape))
    if value.is_complex():
        made = made + 1j * random.normal(size=tuple(value.shape))
    return torch.asarray(made).to(value.dtype)


def native(row):
    return lambda *tensors: row.native(torch, *tensors)


def tensors(row, of="complex128", seed=0):
    return [torch.asarray(a) for a in complex_kernels.inputs(row, of, seed)]


@pytest.mark.slow(3)
@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_gradients_are_those_of_torch(row):
    random = np.random.default_rng(1)
    found = []
    weights = [noise(one, random) for one in several(native(row)(*tensors(row)))]
    for function in (polyop.kernel(row.kernel), native(row)):
        inputs = [t.requires_grad_() for t in tensors(row)]
        outputs = several(function(*inputs))
        loss = sum((w.conj() * one).real.sum() for w, one in zip(weights, outputs, strict=True))
        found.append(torch.autograd.grad(loss, inputs))
    for ours, theirs in zip(*found, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-10)


@pytest.mark.slow(2)
@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_tangents_and_batches_are_those_of_torch(row):
    op, inputs = polyop.kernel(row.kernel), tuple(tensors(row))
    random = np.random.default_rng(1)
    directions = tuple(noise(one, random) for one in inputs)
    ours = torch.func.jvp(op, inputs, directions)
    theirs = torch.func.jvp(native(row), inputs, directions)
    torch.testing.assert_close(several(ours[1]), several(theirs[1]), rtol=1e-9, atol=1e-10)
    samples = [torch.stack(pair) for pair in zip(inputs, tensors(row, seed=3), strict=True)]
    batched = several(torch.vmap(op, out_dims=0)(*samples))
    each = [several(op(*(s[k] for s in samples))) for k in range(2)]
    for one, alone in zip(batched, zip(*each, strict=True), strict=True):
        torch.testing.assert_close(one, torch.stack(alone), rtol=1e-12, atol=1e-12)


@pytest.mark.slow(1)
@pytest.mark.parametrize("name", ["product", "parts"])
def test_second_gradients(name):
    row = ROWS[IDS.index(name)]
    inputs = [t[:5].clone().requires_grad_() for t in tensors(row)]
    assert torch.autograd.gradcheck(polyop.kernel(row.kernel), inputs, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(polyop.kernel(row.kernel), inputs)


def test_a_lazy_conjugate_and_a_compiled_call():
    row = ROWS[0]
    op, (x, w) = polyop.kernel(row.kernel), tensors(row, "complex64")
    torch.testing.assert_close(op(x.conj(), w), w @ x.conj())
    fast = torch.compile(lambda x, w: op(x, w) * 2, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(fast(x, w), 2 * (w @ x))
