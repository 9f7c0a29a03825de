"""Print what op.communication says of each case, and the bytes in the program that JAX compiles, as JSON.

The first argument is the number of devices.
"""

import json
import sys

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from hlo_collectives import bytes_by_kind
from measured_operators import by_kind, cases
from polyop.sharding.placement import Shard

jax.config.update("jax_num_cpu_devices", int(sys.argv[1]))


def sharding(mesh, tensor):
    axes = [[] for _ in tensor.spec.shape]
    for name, placement in zip(mesh.axis_names, tensor.placements, strict=True):
        if isinstance(placement, Shard):
            axes[placement.dim].append(name)
    return NamedSharding(mesh, PartitionSpec(*(tuple(names) or None for names in axes)))


def measured(mesh, operator, cost):
    """Return the bytes of the call, and of the call with its gradient."""
    inputs = tuple(sharding(mesh, tensor) for tensor in cost.inputs)
    (output,) = (sharding(mesh, tensor) for tensor in cost.outputs)

    def both(*tensors):
        *tensors, gradient = tensors
        out, pull = jax.vjp(operator, *tensors)
        return out, pull(gradient)

    tensors = [np.zeros(tensor.spec.shape, np.float32) for tensor in (*cost.inputs, *cost.outputs)]
    forward = jax.jit(operator, in_shardings=inputs, out_shardings=output)
    gradient = jax.jit(both, in_shardings=(*inputs, output), out_shardings=(output, inputs))
    yield bytes_by_kind(forward.lower(*tensors[:-1]).compile().as_text())
    yield bytes_by_kind(gradient.lower(*tensors).compile().as_text())


rows = {}
for name, axes, operator, shapes, placements in cases(jax.device_count()):
    cost = operator.communication(axes, shapes=shapes, placements=placements)
    outputs = [tensor.placements for tensor in cost.outputs]
    wanted = operator.communication(axes, shapes=shapes, placements=placements, outputs=outputs)
    # with the layouts of outputs that the program asks for, another split may be cheaper in the call
    mesh = jax.make_mesh(tuple(axes.values()), tuple(axes), axis_types=(AxisType.Auto,) * len(axes))
    forward, gradient = measured(mesh, operator, cost)
    backward = [one for one in cost.backward if one not in cost.repeated]  # XLA moves a tensor once
    model = by_kind(wanted.forward), by_kind((*wanted.forward, *backward))
    rows[name] = {"model": model, "measured": (forward, gradient)}
print(json.dumps(rows))
