"""A C++ operator module with gradients, called from NumPy and PyTorch, eager and compiled."""

# [build]
import pathlib

import numpy as np

import polyop

here = pathlib.Path(__file__).parent
ops = polyop.CustomOpBuilder("smooth", [here / "smooth.cpp"], backend="CPU").load()

print(ops.mul)  # <polyop operator smooth::mul(Tensor x, Tensor y) -> Tensor>, and more
x = np.array([[1.0, -2.0], [3.0, 0.0]])
print(ops.smooth_abs(x, width=0.5))
out, pull = ops.mul.vjp(x, np.array([10.0, 20.0]))
print(pull(np.ones_like(x))[1])  # summed over the broadcast rows
# [/build]

# [torch]
import torch  # noqa: E402

t = torch.tensor(x, requires_grad=True)
(gradient,) = torch.autograd.grad(ops.mul(ops.smooth_abs(t), t).sum(), t)
print(gradient)

step = torch.compile(lambda t: ops.smooth_abs(t, width=0.5).sum(), fullgraph=True, backend="aot_eager")
step(t).backward()
print(t.grad)
# [/torch]

# [second]
square = torch.tensor([2.0, 3.0], dtype=torch.float64, requires_grad=True)
(first,) = torch.autograd.grad(ops.mul(square, square).sum(), square, create_graph=True)
(second,) = torch.autograd.grad(first.sum(), square)
print(second)  # exact: Backward is made of aclnn operators

try:
    (first,) = torch.autograd.grad(ops.smooth_abs(square).sum(), square, create_graph=True)
    first.sum().backward()
except polyop.PolyopError as problem:
    reason = str(problem)
    print(reason)
# [/second]

values = np.sqrt(x * x + 1)
np.testing.assert_allclose(gradient.numpy(), x / values * x + values)
np.testing.assert_allclose(t.grad.numpy(), x / np.sqrt(x * x + 0.25))
np.testing.assert_array_equal(pull(np.ones_like(x))[1], [4.0, -2.0])
np.testing.assert_array_equal(second.numpy(), [2.0, 2.0])
assert "it runs smooth_abs_grad, a kernel of its own" in reason
