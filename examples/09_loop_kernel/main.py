"""Softmax and its gradient as loop kernels: plain Python loops, compiled, called from two frameworks."""
# ruff: noqa: F821 - output_tensor, exp and max are words of the language

import pathlib
import subprocess
import sys

# [softmax]
import numpy as np

import polyop


@polyop.kernel
def softmax(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        largest = x[i, 0]
        for j in range(1, x.shape[1]):
            largest = max(largest, x[i, j])
        total = 0.0
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - largest)
            total += y[i, j]
        for j in range(x.shape[1]):
            y[i, j] /= total
    return y


# [/softmax]


# [gradient]
@polyop.kernel
def softmax_gradient(y, dy):
    dx = output_tensor(y.shape, y.dtype)
    for i in range(y.shape[0]):
        dot = 0.0
        for j in range(y.shape[1]):
            dot += y[i, j] * dy[i, j]
        for j in range(y.shape[1]):
            dx[i, j] = y[i, j] * (dy[i, j] - dot)
    return dx


op = polyop.Custom(softmax, func_type="hybrid", bprop=lambda x, y, dy: (softmax_gradient(y, dy),))
# [/gradient]

polyop_samples = {  # what polyop check calls the operators with
    softmax_gradient.name: (np.full((3, 4), 0.25), np.arange(12.0).reshape(3, 4)),
    op.name: (np.arange(12.0).reshape(3, 4) / 4,),
}

# [numpy]
x = np.array([[0.0, 1.0, 2.0], [-1.0, 0.0, 100.0]], np.float32)
print(op)  # <polyop operator custom::softmax(Tensor x) -> Tensor>, and more
print(op(x))  # compiled at the first call
print(softmax.python(x))  # the same function as plain Python: slow, and what the operator means

out, pull = op.vjp(x)
print(pull(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], np.float32))[0])
# [/numpy]

# [torch]
import torch  # noqa: E402

torch.manual_seed(0)
t = torch.tensor(x, requires_grad=True)
op(t)[0, 0].backward()
print(t.grad)
# [/torch]

double = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
print(torch.autograd.gradcheck(op, double))

step = torch.compile(lambda t: op(t).log().sum(), fullgraph=True, backend="aot_eager")
print(torch.autograd.grad(step(double), double)[0])

# [inside]
print(op.source().splitlines()[0])  # the C that was compiled last
# [/inside]


def compare():
    """Compare with NumPy, and the gradient with PyTorch's own softmax."""
    exponentials = np.exp(x - x.max(1, keepdims=True))
    expected = exponentials / exponentials.sum(1, keepdims=True)
    np.testing.assert_allclose(op(x), expected, rtol=1e-6)
    np.testing.assert_allclose(softmax.python(x), expected, rtol=1e-6)
    for sample in (torch.randn(1, 1), torch.randn(300, 70), torch.randn(8, 5).double()):
        a, b = sample.clone().requires_grad_(), sample.clone().requires_grad_()
        weights = torch.randn_like(sample)
        (op(a) * weights).sum().backward()
        (torch.softmax(b, 1) * weights).sum().backward()
        torch.testing.assert_close(a.grad, b.grad)


if __name__ == "__main__":
    compare()
    # the code of docs/guides/loop-kernels.md and docs/reference/kernel-operators.md, which checks itself
    for name in ("language.py", "operators.py"):
        subprocess.run([sys.executable, pathlib.Path(__file__).with_name(name)], check=True)
