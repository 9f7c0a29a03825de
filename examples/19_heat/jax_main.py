"""The plate of main.py on four devices of JAX, each with a block of it, in one process."""

import jax
import jax.numpy as jnp
import numpy as np
from heat import RATE, ROUNDS, STEPS, fit, step, target
from jax.sharding import NamedSharding, PartitionSpec

jax.config.update("jax_num_cpu_devices", 4)


# [loss]
def loss(start, goal):
    u = start
    for _ in range(STEPS):
        u = step(u)
    return jnp.sum((u - goal) ** 2)


# [/loss]


def main():
    # [jax]
    mesh = jax.make_mesh((2, 2), ("rows", "columns"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    blocks = NamedSharding(mesh, PartitionSpec("rows", "columns"))
    goal = jax.device_put(target(), blocks)
    start = jax.device_put(np.zeros_like(goal), blocks)
    descend = jax.jit(jax.value_and_grad(loss), out_shardings=(None, blocks))
    losses = []
    for _ in range(ROUNDS):
        value, gradient = descend(start, goal)
        losses.append(float(value))
        start = start - RATE * gradient
    # [/jax]
    alone, losses_alone = fit(target())
    np.testing.assert_allclose(start, alone, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(losses, losses_alone, rtol=1e-4)
    assert start.addressable_shards[0].data.shape == (goal.shape[0] // 2, goal.shape[1] // 2)
    print(f"{len(mesh.devices.flat)} devices: loss {losses[0]:.3f} -> {losses[-1]:.5f}, as in one process")


if __name__ == "__main__":
    main()
