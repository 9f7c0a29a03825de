"""One of two processes with two devices each, on one mesh: mesh_process.py PORT RANK."""

import os
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import polyop

port, rank = map(int, sys.argv[1:])
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(f"127.0.0.1:{port}", 2, rank, initialization_timeout=60)
assert (jax.device_count(), jax.local_device_count()) == (4, 2)
mesh = jax.make_mesh((4,), ("a",), axis_types=(AxisType.Auto,))


def split(value, *spec):
    return jax.make_array_from_callback(
        value.shape, NamedSharding(mesh, PartitionSpec(*spec)), lambda i: value[i]
    )


def neighbours(x):
    y = np.zeros_like(x)
    y[1:-1] = x[:-2] + x[2:]
    return y


linear = polyop.operator("processes::linear(Tensor x, Tensor w) -> Tensor", lambda x, w: x @ w,
                         dims="b i, i o -> b o", parallel="b o", sum="i",
                         gradient=lambda x, w, out, dout: (dout @ w.T, x.T @ dout))  # fmt: skip
stencil = polyop.operator(
    "processes::stencil(Tensor x) -> Tensor", neighbours, dims="n -> n", halo={"n": (1, 1)}
)
x, w = np.arange(32, dtype=np.float32).reshape(4, 8), np.ones((8, 4), np.float32)
y = jax.jit(linear)(split(x, None, "a"), split(w, "a"))
for shard in y.addressable_shards:
    np.testing.assert_allclose(shard.data, (x @ w)[shard.index])
gradient = jax.jit(jax.grad(lambda x, w: jnp.sum(linear(x, w)), 1))(split(x, "a"), split(w))
for shard in gradient.addressable_shards:
    np.testing.assert_allclose(shard.data, (x.T @ np.ones((4, 4)))[shard.index])
row = np.arange(16, dtype=np.float32) ** 2
for shard in jax.jit(stencil)(split(row, "a")).addressable_shards:
    np.testing.assert_allclose(shard.data, neighbours(row)[shard.index])
print(f"process {rank} is done")
jax.distributed.shutdown()
