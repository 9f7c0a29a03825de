# %% [markdown]
# # 4. Gradients, and what is saved for them
#
# polyop derives the gradient of a loop kernel from its loops. Here you look at a derived gradient, compare it with
# finite differences, and see which values the forward call saves. This takes about fifteen minutes.
#
# ## A kernel without a gradient rule

# %%
import numpy as np
import torch

import polyop


@polyop.kernel
def rms_norm(x, scale):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        squares = 0.0
        for j in range(x.shape[1]):
            squares += x[i, j] * x[i, j]
        factor = rsqrt(squares / x.shape[1] + 1e-6)
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * factor * scale[j]
    return y


random = np.random.default_rng(0)
x, scale = random.normal(size=(3, 4)), random.normal(size=4)

# %% [markdown]
# ## The gradient on arrays
#
# `vjp` returns the output and a function, often called the *pullback*. The pullback takes the gradient of some loss
# with respect to the output, and returns the gradients with respect to the inputs.

# %%
y, pull = rms_norm.vjp(x, scale)
weight = random.normal(size=y.shape)
d_x, d_scale = pull(weight)
print(d_x.shape, d_scale.shape)

# %% [markdown]
# A finite difference gives the same number: move one element a little, and look how the loss moves.

# %%
step = 1e-6
moved = x.copy()
moved[1, 2] += step
difference = ((rms_norm(moved, scale) - y) * weight).sum() / step
print(difference, d_x[1, 2])
assert abs(difference - d_x[1, 2]) < 1e-4

# %% [markdown]
# ## The derived loops
#
# The gradient is a loop kernel as well. polyop prints it in the same language.

# %%
loops = rms_norm.gradient.loops(x, scale)
print(loops)
assert loops.startswith("def rms_norm__backward(x, scale, d_y")

# %% [markdown]
# Read it from top to bottom: for each row it computes `squares` and `factor` again, then the adjoints (`d_factor` is
# the derivative of the loss with respect to `factor`), and at last `d_x`. Every row adds to `d_scale`.
#
# ## What is saved
#
# `squares` and `factor` are one number each for a row, much smaller than `x`. So PyTorch and JAX call a form of the
# kernel that returns them too, and the backward kernel need not compute them again. A hook of PyTorch sees what is
# kept until the backward call:

# %%
saved = []


def pack(tensor):
    saved.append(tuple(tensor.shape))
    return tensor


t, s = torch.tensor(x, requires_grad=True), torch.tensor(scale, requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
    out = rms_norm(t, s)
print(saved)
assert sorted(saved) == [(3,), (3,), (3, 4), (4,)]  # squares and factor, x, scale

# %%
out.backward(torch.tensor(weight))
assert np.allclose(t.grad, d_x)
assert np.allclose(s.grad, d_scale)

# %% [markdown]
# ## Less memory, more time
#
# `compile_attrs={"tape": "none"}` saves no temporaries: the backward kernel computes all of them again. The values
# are the same.

# %%
lean = polyop.kernel(rms_norm.python, compile_attrs={"tape": "none"}, name="tutorial::lean_norm")
t2 = torch.tensor(x, requires_grad=True)
saved.clear()
with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
    out = lean(t2, torch.tensor(scale))
print(saved)
assert sorted(saved) == [(3, 4), (4,)]  # x and scale alone
out.backward(torch.tensor(weight))
assert np.allclose(t2.grad, d_x)

# %% [markdown]
# ## What is refused
#
# A kernel that changes its own input has no gradient. The derivative of `x[i] * x[i]` needs the old `x[i]`, and the
# kernel has overwritten it. polyop refuses every kernel of this kind. The error says what to do.


# %%
@polyop.kernel
def squared(x):
    for i in range(x.shape[0]):
        x[i] = x[i] * x[i]
    return x


try:
    squared(torch.ones(3, requires_grad=True) * 1).sum().backward()
    message = ""
except Exception as problem:
    message = str(problem)
print(message)
assert "squared: writes an argument in place, and such an operator has no gradient" in message
assert "return a new tensor instead" in message

# %% [markdown]
# ## What next
#
# * [Gradients of loop kernels](../guides/loop-gradients.md) has the whole table of what is saved, recomputed and taped.
# * Exercise: `torch.autograd.gradcheck(rms_norm, (t, s))` compares every element with a finite difference.
