"""One operator on eight devices: placements of its inputs give the values and gradients of plain arrays.

Each pair of placements is tried, of two inputs or of one on two axes: mesh_table.py matmul
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

from pairs import every_pair
from polyop.core.errors import UninitialisedWarning
from twelve_operators import twelve_operators

AXES = ("a", "b")
MESHES = ((8,), (2, 4))


def specs(shape, sizes):
    """Yield every way to split an array over a mesh, with the dimension that each mesh axis splits, or None."""
    choices = (None, *range(len(shape)))
    for dims in itertools.product(choices, repeat=len(sizes)):
        split = [tuple(AXES[axis] for axis, dim in enumerate(dims) if dim == d) for d in range(len(shape))]
        counts = [np.prod([sizes[AXES.index(name)] for name in names], dtype=int) for names in split]
        if all(size % count == 0 for size, count in zip(shape, counts, strict=True)):
            yield dims, PartitionSpec(*(names or None for names in split))


def main(name):
    """Print how many combinations were compared on each mesh; raise where results differ."""
    warnings.simplefilter("ignore", UninitialisedWarning)  # the page's kernels add to outputs
    sample = next(sample for sample in twelve_operators() if sample.name == name)
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

    for sizes in MESHES:
        mesh = jax.make_mesh(sizes, AXES[: len(sizes)], axis_types=(AxisType.Auto,) * len(sizes))
        product = itertools.product(*(specs(x.shape, sizes) for x in sample.inputs))
        combinations = every_pair(product, choices=lambda row: [dim for dims, _ in row for dim in dims])
        for each in combinations:
            shardings = [NamedSharding(mesh, spec) for _, spec in each]
            pulled, outputs = run(*map(jax.device_put, sample.inputs, shardings))
            for one, other in zip((*outputs, *pulled), (*rows, *gradients), strict=True):
                np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5, err_msg=f"{name} {shardings}")
        print(len(combinations))


if __name__ == "__main__":
    main(sys.argv[1])
