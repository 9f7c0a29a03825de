"""One operator, written once in C, called from NumPy and PyTorch: eager, differentiated, compiled."""

# [define]
import pathlib

import polyop

here = pathlib.Path(__file__).parent


def gradient(x, slope, out, dout):  # the inputs, the output, its gradient; None: slope has none
    xp = polyop.array_namespace(x)  # where, exp, sum ... of the framework that calls
    return xp.where(x > 0, dout, slope * dout), None


leaky = polyop.operator(
    "first::leaky(Tensor x, float slope=0.01) -> Tensor",
    f"{here / 'leaky.c'}:leaky",  # compiled at once, kept in the build cache
    dtypes=["float32"],  # what the kernel takes; others are refused
    gradient=gradient,
    batch="elementwise",  # an element of the output depends on that element of x alone
)
# [/define]

# [numpy]
import numpy as np  # noqa: E402

x = np.array([[0.0, -0.1], [-0.2, 1.0]], np.float32)
print(leaky(x))
out, pull = leaky.vjp(x, 0.5)
print(pull(np.ones_like(x))[0])
# [/numpy]

# [torch]
import torch  # noqa: E402

t = torch.tensor(x, requires_grad=True)
leaky(t, slope=0.5).sum().backward()
print(t.grad)

fast = torch.compile(lambda t: leaky(t) + 1, fullgraph=True, backend="aot_eager")
print(fast(torch.tensor(x)))
print(torch.vmap(torch.func.grad(lambda row: leaky(row).sum()))(torch.tensor(x)))
# [/torch]

assert leaky(x).tolist() == torch.nn.functional.leaky_relu(torch.tensor(x)).tolist()
assert pull(np.ones_like(x))[0].tolist() == t.grad.tolist() == [[0.5, 0.5], [0.5, 1.0]]
