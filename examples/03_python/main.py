"""A Python function as a kernel, and a gradient that is made of operators, to any order."""

import numpy as np

import polyop

# sin and cos are each other's gradient: rules may name operators that are defined later
sine = polyop.operator(
    "python::sine(Tensor x) -> Tensor",
    np.sin,
    gradient=lambda x, out, dout: (cosine(x) * dout,),
    batch="elementwise",
)
cosine = polyop.operator(
    "python::cosine(Tensor x) -> Tensor",
    np.cos,
    gradient=lambda x, out, dout: (-sine(x) * dout,),
    batch="elementwise",
)

x = np.array([0.0, 1.0])
out, pull = sine.vjp(x)
print(out, pull(np.ones(2)))

import torch  # noqa: E402

t = torch.tensor(x)
print(torch.func.hessian(lambda t: sine(t).sum())(t))
torch.testing.assert_close(torch.func.hessian(lambda t: sine(t).sum())(t), torch.diag(-torch.sin(t)))
assert torch.autograd.gradcheck(sine, t.clone().requires_grad_())
