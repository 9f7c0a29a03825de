# %% [markdown]
# # 5. Many devices
#
# An operator needs no second version for several devices. polyop knows along which dimensions a call can be cut, and
# JAX, PyTorch and dask use that. Here you ask what a call would move on a large mesh, and then run it on four
# devices. This takes about ten minutes and needs JAX; the four devices are parts of one CPU.
#
# ## Four devices on one machine
#
# JAX reads this variable when it starts, so it is set before the import.

# %%
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np

import polyop

assert len(jax.devices()) == 4

# %% [markdown]
# ## An operator, and how it can be cut
#
# Each element of the result has a row and a column. The rows of `x` and the columns of `w` are independent. The inner
# dimension `i` is summed: a device with a part of it has a part of every sum.

# %%
linear = polyop.operator(
    "tutorial::linear(Tensor x, Tensor w) -> Tensor",
    lambda x, w: x @ w,
    dims="b i, i o -> b o",
    parallel="b o",
    sum="i",
    gradient=lambda x, w, y, dy: (dy @ w.T, x.T @ dy),
)

# %% [markdown]
# ## What would it cost?
#
# `communication` says what a call and its gradient move between devices. It runs nothing, so the mesh may be one that
# you do not have: here 128 devices that share the rows.

# %%
cost = linear.communication({"data": 128}, shapes=[(2048, 64), (64, 32)], placements=[("data", None), None])
print(cost)
assert cost.forward == ()  # each device has the rows it needs
assert [(move.kind, move.tensor) for move in cost.backward] == [("all-reduce", "gradient of w")]

# %% [markdown]
# The forward pass moves nothing. In the backward pass every device has a part of the gradient of `w`, and the parts
# are summed: an all-reduce. If the inner dimension is cut instead, the sum is in the forward pass:

# %%
inner = linear.communication({"d": 4}, shapes=[(2048, 64), (64, 32)], placements=[(None, "d"), ("d", None)])
print(inner)
assert [(move.kind, move.tensor) for move in inner.forward] == [("all-reduce", "out")]

# %% [markdown]
# ## Run it
#
# The arrays are placed on the devices, and the program stays as it is.

# %%
from jax.sharding import NamedSharding, PartitionSpec

mesh = jax.make_mesh((4,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
rows, whole = NamedSharding(mesh, PartitionSpec("data", None)), NamedSharding(mesh, PartitionSpec())
random = np.random.default_rng(0)
x, w = random.normal(size=(8, 6)).astype(np.float32), random.normal(size=(6, 5)).astype(np.float32)
out = jax.jit(linear)(jax.device_put(x, rows), jax.device_put(w, whole))
print(out.sharding)
assert len({shard.device for shard in out.addressable_shards}) == 4
assert all(shard.data.shape == (2, 5) for shard in out.addressable_shards)
np.testing.assert_allclose(out, x @ w, rtol=1e-5, atol=1e-5)

# %% [markdown]
# The gradient with respect to `w` is a sum over all devices. It is the one of a single device:

# %%
loss = jax.jit(jax.grad(lambda w, x: (linear(x, w) ** 2).sum()))
sharded = loss(jax.device_put(w, whole), jax.device_put(x, rows))
np.testing.assert_allclose(sharded, loss(jnp.asarray(w), jnp.asarray(x)), rtol=1e-4, atol=1e-4)


# %% [markdown]
# ## A stencil has neighbours
#
# For a loop kernel polyop reads from the loops how it can be cut. Each element of a stencil reads its neighbours, so a
# device needs the edges of the devices beside it: a *halo*.


# %%
@polyop.kernel
def smooth(u):
    v = output_tensor(u.shape, u.dtype)
    for i in range(u.shape[0]):
        if i == 0 or i == u.shape[0] - 1:
            v[i] = u[i]
        else:
            v[i] = 0.25 * u[i - 1] + 0.5 * u[i] + 0.25 * u[i + 1]
    return v


edges = smooth.communication({"d": 4}, shapes=[(1000,)], placements=[("d",)])
print(edges)
assert {move.kind for move in edges.forward} == {"permute"}

line = NamedSharding(mesh, PartitionSpec("data"))
u = random.normal(size=16).astype(np.float32)
np.testing.assert_allclose(jax.jit(smooth)(jax.device_put(u, line)), smooth(u), rtol=1e-6)

# %% [markdown]
# ## What next
#
# * [Distributed training](../guides/distributed.md): the same in PyTorch, with FSDP2 and DTensors.
# * [What a call costs](../reference/communication.md): how the bytes are counted.
# * Exercise: remove the lines `parallel=` and `sum=` from `linear`, and print `cost` again. polyop then does not know that
#   rows are independent: the forward pass moves all of `x` to every device.
