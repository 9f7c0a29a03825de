# %% [markdown]
# # 2. From a C++ extension of PyTorch to JAX
#
# You have an operator in C++ that PyTorch calls: a file with `TORCH_LIBRARY`, as `torch.utils.cpp_extension`
# builds it. Here the same file, without a change, is called from JAX and NumPy. This takes about ten minutes;
# most of it is the first build, because PyTorch's headers are long.
#
# ## The extension
#
# It registers a schema and a function for the CPU. Nothing in it knows polyop.

# %%
from pathlib import Path

CODE = r"""
#include <ATen/ATen.h>
#include <torch/library.h>

at::Tensor muladd(const at::Tensor& a, const at::Tensor& b, double c) {
  TORCH_CHECK(a.sizes() == b.sizes(), "muladd: a and b must have one shape");
  return a * b + c;
}

TORCH_LIBRARY(tutorial_ext, m) { m.def("muladd(Tensor a, Tensor b, float c) -> Tensor"); }
TORCH_LIBRARY_IMPL(tutorial_ext, CPU, m) { m.impl("muladd", &muladd); }
"""
Path("muladd.cpp").write_text(CODE)

# %% [markdown]
# ## Load it
#
# `load_library` builds the file and loads it through PyTorch. (A `.so` that is built already is loaded as it is.)

# %%
import numpy as np
import torch

import polyop

ops = polyop.load_library("muladd.cpp")
print(ops.muladd)

a = torch.tensor([1.0, 2.0, 3.0])
assert torch.ops.tutorial_ext.muladd(a, a, 1.0).tolist() == [2.0, 5.0, 10.0]  # PyTorch's own way still works
assert ops.muladd(np.array([1.0, 2.0]), np.array([3.0, 4.0]), 0.5).tolist() == [3.5, 8.5]

# %% [markdown]
# ## What PyTorch must still be told
#
# Two things cannot be read from the C++ code: the shape of the output when there are no values yet (PyTorch calls
# this a *fake*), and the gradient. Both are registered in PyTorch, once. polyop uses them in every framework.


# %%
@torch.library.register_fake("tutorial_ext::muladd")
def fake(a, b, c):
    return torch.empty_like(a)


def keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:2])


def backward(ctx, grad):
    a, b = ctx.saved_tensors
    return grad * b, grad * a, None


torch.library.register_autograd("tutorial_ext::muladd", backward, setup_context=keep)

# %% [markdown]
# ## In JAX
#
# The operator works under `jit` and `grad`.

# %%
import jax
import jax.numpy as jnp

x = jnp.asarray([1.0, 2.0, 3.0])
out = jax.jit(lambda x: ops.muladd(x, x, 1.0))(x)
slope = jax.grad(lambda x: ops.muladd(x, x, 1.0).sum())(x)
print(out, slope)
assert out.tolist() == [2.0, 5.0, 10.0]
assert slope.tolist() == [2.0, 4.0, 6.0]  # the derivative of x * x + 1

# %% [markdown]
# ## Errors stay readable
#
# The message of `TORCH_CHECK` arrives in every framework.

# %%
try:
    ops.muladd(np.ones(2), np.ones(3), 0.0)
except Exception as problem:
    message = str(problem)
print(message.splitlines()[0])
assert "a and b must have one shape" in message

# %% [markdown]
# ## What next
#
# * An extension with sources, headers and flags of its own:
#   [a library of PyTorch](../guides/operator-libraries.md#a-library-of-pytorch), with a table of packages that were tried.
# * A kernel that does not need PyTorch at all starts faster and is smaller: [kernels in C and
#   C++](../guides/aot-kernels.md).
# * Exercise: remove the fake and call the operator under `jax.jit`. The error says what to register.
