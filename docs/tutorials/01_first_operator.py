# %% [markdown]
# # 1. A first operator
#
# You write a function in C, make an operator of it, and call the operator from NumPy, PyTorch and JAX.
# This takes about ten minutes. You need a C compiler, PyTorch and JAX.
#
# ## The kernel
#
# A *kernel* is the code that computes. In C it is a function of seven arguments. `params` holds pointers to the
# data: first the inputs, then the outputs. `ndims` and `shapes` hold their numbers of dimensions and their sizes.
# The function returns 0 if all went well.

# %%
from pathlib import Path

CODE = r"""
#include "polyop/abi.h"

/* y = x where x > 0, slope * x elsewhere */
int leaky(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes,
          void *stream, void *extra) {
  const float *x = params[0];
  float *y = params[1];
  double slope;
  if (polyop_get_float(extra, "slope", &slope)) return 1;
  int64_t n = 1;
  for (int i = 0; i < ndims[0]; ++i) n *= shapes[0][i];
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] > 0 ? x[i] : (float)slope * x[i];
  return 0;
}
"""
Path("leaky.c").write_text(CODE)

# %% [markdown]
# ## The operator
#
# An *operator* is the kernel together with what frameworks must know about it:
#
# * a schema, in the grammar of PyTorch: its name, its arguments, its results;
# * `dtypes`: what the kernel can read. Other inputs are refused;
# * `batch="elementwise"`: each output element depends on the input element at the same place alone. From this
#   follow the shape of the output and how `vmap` works.
#
# The C file is compiled now. The library is kept in a cache, so the next run does not compile it.

# %%
import numpy as np

import polyop

leaky = polyop.operator(
    "tutorial::leaky(Tensor x, float slope=0.01) -> Tensor",
    "leaky.c:leaky",
    dtypes=["float32"],
    batch="elementwise",
)
x = np.array([-2.0, -1.0, 1.0, 3.0], np.float32)
print(leaky(x, 0.5))
assert leaky(x, 0.5).tolist() == [-1.0, -0.5, 1.0, 3.0]

# %% [markdown]
# The same object takes tensors of PyTorch and JAX. No second build is needed. (`slope` is an attribute, so it must be a
# plain number also under `jax.jit`.)

# %%
import jax
import jax.numpy as jnp
import torch

in_torch = leaky(torch.tensor(x), slope=0.5)
in_jax = jax.jit(lambda x: leaky(x, 0.5))(jnp.asarray(x))
print(in_torch, in_jax)
assert in_torch.tolist() == in_jax.tolist() == [-1.0, -0.5, 1.0, 3.0]

# %% [markdown]
# ## What is refused
#
# NumPy's default dtype is float64. This kernel would read it as float32 numbers, so polyop refuses it, and says
# why.

# %%
try:
    leaky(np.ones(3))
except TypeError as problem:
    message = str(problem)
print(message)
assert "float64" in message

# %% [markdown]
# ## A gradient
#
# A gradient rule gets the arguments, the output and the gradient of the output. It returns one gradient for each
# argument, and None for one that has no gradient. `polyop.array_namespace` gives the functions of the framework that
# calls, under common names, so one rule serves all of them.
#
# In a notebook you may change a cell and run it again: the new operator replaces the old one of the same name.


# %%
def leaky_gradient(x, slope, out, dout):
    xp = polyop.array_namespace(x)
    return xp.where(x > 0, dout, slope * dout), None


differentiable = polyop.operator(
    "tutorial::differentiable_leaky(Tensor x, float slope=0.01) -> Tensor",
    "leaky.c:leaky",
    dtypes=["float32"],
    batch="elementwise",
    gradient=leaky_gradient,
)

t = torch.tensor(x, requires_grad=True)
differentiable(t, 0.5).sum().backward()
slopes = jax.grad(lambda x: differentiable(x, 0.5).sum())(jnp.asarray(x))
print(t.grad, slopes)
assert t.grad.tolist() == slopes.tolist() == [0.5, 0.5, 1.0, 1.0]

# %% [markdown]
# ## Is it right?
#
# `polyop.testing.check` tries the operator: inferred and real shapes, gradients beside finite differences, every
# memory layout, compiled calls. `reference=` is a plain definition of the values.

# %%
from polyop.testing import check

report = check(
    differentiable,
    x,
    0.5,
    reference=lambda x, slope: np.where(x > 0, x, np.float32(slope) * x),
    hosts=["numpy", "torch", "jax"],
)
print(report)
assert report.ok

# %% [markdown]
# ## What next
#
# * A mistake to try: change `x[i] > 0` to `x[i] < 0` in the C code, run the cells again, and read the report.
# * Exercise: give the operator a second output that holds the mask, with
#   `-> (Tensor, Tensor)` and `infer=lambda x, slope: (x, x)`.
# * [From a C++ extension to JAX](02_extension_to_jax.py) moves an operator that you have already.
