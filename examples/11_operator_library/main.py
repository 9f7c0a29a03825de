"""Operators by schema: a C++ library, and the same in Python; called from NumPy, PyTorch and JAX."""

# [load]
import pathlib

import numpy as np

import polyop

ops = polyop.load_library(pathlib.Path(__file__).parent / "ops.cpp")
print(ops.my_op)  # <polyop operator myops::my_op(Tensor self, Tensor other) -> Tensor>, and more

x = np.array([1.0, -2.0, 3.0])
print(ops.my_op(x, 2 * x))
print(ops.soften(x, width=0.5))
# [/load]

# [torch]
import torch  # noqa: E402

t = torch.tensor(x, requires_grad=True)
ops.my_op(t, t).sum().backward()
print(t.grad)

step = torch.compile(lambda t: torch.ops.myops.my_op(t, t) * t, fullgraph=True, backend="aot_eager")
print(step(t))
# [/torch]

# [jax]
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

print(jax.jit(jax.grad(lambda a: ops.my_op(a, a * a).sum()))(jnp.asarray([1.0, -2.0, 3.0])))
# [/jax]

# [python]
lib = polyop.Library("pyops")


@lib.define("halve(Tensor x) -> Tensor")  # and the kernel for the CPU
def halve(x):
    return x / 2


lib.fake("halve", "x")  # the output is like x


@lib.gradient("halve")
def halve_gradient(x, out, dout):
    return (dout / 2,)


print(lib.halve(x), torch.ops.pyops.halve(t))
# [/python]

# [checks]
try:
    polyop.Library("myops")
except polyop.PolyopError as problem:
    print(problem)
# [/checks]

np.testing.assert_array_equal(ops.my_op(x, 2 * x), 3 * x)
np.testing.assert_allclose(ops.soften(x, width=0.5), x / (0.5 + abs(x)))
np.testing.assert_array_equal(t.grad, [2, 2, 2])
np.testing.assert_array_equal(lib.halve.vjp(x)[1](x)[0], x / 2)
