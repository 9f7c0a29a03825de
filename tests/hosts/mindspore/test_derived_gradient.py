"""Derived gradients of loop kernels under ``ms.grad``, in both modes, compared with PyTorch's."""
# ruff: noqa: F821 - the words of the language

import numpy as np
import pytest

from polyop import Custom

ms = pytest.importorskip("mindspore", reason="MindSpore is not installed")
torch = pytest.importorskip("torch", reason="PyTorch is not installed")


def softmax(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        top = x[i, 0]
        for j in range(1, x.shape[1]):
            top = max(top, x[i, j])
        total = 0.0
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - top)
            total += y[i, j]
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] / total
    return y


def taken(x, at):
    y = output_tensor((at.shape[0], x.shape[1]), x.dtype)
    for i in range(at.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[at[i], j] * x[at[i], j]
    return y


def scanned(x, decay):
    y = output_tensor(x.shape, x.dtype)
    for b in range(x.shape[0]):
        state = 0.0
        for t in range(x.shape[1]):
            state = tanh(decay[t] * state + x[b, t])
            y[b, t] = state
    return y


def torch_scan(x, decay):
    state, result = torch.zeros(x.shape[0]), []
    for t in range(x.shape[1]):
        state = torch.tanh(decay[t] * state + x[:, t])
        result.append(state)
    return torch.stack(result, 1)


rng = np.random.default_rng(7)
X, DECAY = rng.standard_normal((3, 4)).astype(np.float32), rng.standard_normal(4).astype(np.float32)
AT = np.array([2, 0, 2, 1], np.int32)
CASES = {
    "softmax": (softmax, (X,), lambda x: torch.softmax(x, 1)),
    "taken": (taken, (X, AT), lambda x, at: x[at.long()] ** 2),
    "scanned": (scanned, (X, DECAY), torch_scan),
}


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_pytorchs(name, mode):
    function, arrays, peer = CASES[name]
    real = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]
    operands = [torch.tensor(a, requires_grad=i in real) for i, a in enumerate(arrays)]
    out = peer(*operands)
    weight = rng.standard_normal(out.shape).astype(np.float32)
    expected = torch.autograd.grad(out, [operands[i] for i in real], torch.tensor(weight))
    op, scale = Custom(function, func_type="hybrid"), ms.Tensor(weight)

    def loss(*inputs):
        return (op(*inputs) * scale).sum()

    gradient = ms.grad(mode(loss), grad_position=tuple(real))
    result = gradient(*map(ms.Tensor, arrays))
    for one, other in zip(result if isinstance(result, tuple) else (result,), expected, strict=True):
        np.testing.assert_allclose(one.asnumpy(), other.numpy(), rtol=2e-5, atol=2e-6)
