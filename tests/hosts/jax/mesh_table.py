"""One operator on one mesh: every placement of every input gives the values and gradients of plain arrays.

mesh_table.py matmul 2 4 [every n-th combination of placements]
"""

import itertools
import os
import sys
import warnings

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from polyop.core.errors import UninitialisedWarning
from twelve_operators import twelve_operators

AXES = ("a", "b")


def specs(shape, sizes):
    """Yield every way to split an array over a mesh: each mesh axis splits one dimension, or none."""
    choices = (None, *range(len(shape)))
    for dims in itertools.product(choices, repeat=len(sizes)):
        split = [tuple(AXES[axis] for axis, dim in enumerate(dims) if dim == d) for d in range(len(shape))]
        counts = [np.prod([sizes[AXES.index(name)] for name in names], dtype=int) for names in split]
        if all(size % count == 0 for size, count in zip(shape, counts, strict=True)):
            yield PartitionSpec(*(names or None for names in split))


def main(name, sizes, step):
    """Print how many combinations were compared; raise where results differ."""
    warnings.simplefilter("ignore", UninitialisedWarning)  # the page's kernels add to outputs
    sample = next(sample for sample in twelve_operators() if sample.name == name)
    mesh = jax.make_mesh(sizes, AXES[: len(sizes)], axis_types=(AxisType.Auto,) * len(sizes))
    expected, pull = sample.operator.vjp(*sample.inputs)
    rows = expected if isinstance(expected, tuple) else (expected,)
    weights = [np.random.default_rng(9).uniform(0.5, 1.5, row.shape).astype(row.dtype) for row in rows]
    pulled = pull(*weights) if len(rows) == 1 else pull(tuple(weights))
    gradients = [(pulled if isinstance(pulled, tuple) else (pulled,))[i] for i in sample.differentiable]

    @jax.jit
    def run(*inputs):
        def loss(*inputs):
            outputs = jax.tree.leaves(sample.operator(*inputs))
            return sum(
                (jnp.sum(o * w) for o, w in zip(outputs, weights, strict=True)), jnp.zeros(())
            ), outputs

        return jax.grad(loss, sample.differentiable, has_aux=True)(*inputs)

    combinations = list(itertools.product(*(specs(x.shape, sizes) for x in sample.inputs)))[::step]
    for each in combinations:
        arrays = [jax.device_put(x, NamedSharding(mesh, s)) for x, s in zip(sample.inputs, each, strict=True)]
        pulled, outputs = run(*arrays)
        for one, other in zip((*outputs, *pulled), (*rows, *gradients), strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5, err_msg=f"{name} {each}")
    print(len(combinations))


if __name__ == "__main__":
    count = len(sys.argv) - 1
    main(sys.argv[1], tuple(map(int, sys.argv[2:count])), int(sys.argv[count]))
