"""One of several processes: operators on DTensors, with gradients; each that is right is printed.

Usage: dtensor_processes.py RANK COUNT STORE eager|compiled
"""

import faulthandler
import os
import pathlib
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import torch
import torch.distributed as dist
from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh

import polyop
from twelve_operators import twelve_operators

LAYOUTS = {
    "matmul": ([Shard(1)], [Shard(0)]),
    "norm": ([Shard(0)], [Replicate()]),
    "window": ([Shard(0)], [Replicate()]),
    "module rows": ([Shard(0)], [Replicate()]),
    "module sum": ([Shard(1)], [Shard(0)]),
}
MODULE = pathlib.Path(__file__).parent / "module_dims.cpp"
DIMS = {"linear": {"dims": "b i, i o -> b o", "parallel": "b o", "sum": "i"}}


def modules():
    """Return an operator of a C++ module with inputs of which the last process has nothing, twice."""
    linear = polyop.CustomOpBuilder("module_dims", [str(MODULE)]).load(dims=DIMS).linear
    draw = torch.Generator().manual_seed(0)
    for name, shapes in {"module rows": ((5, 3), (3, 2)), "module sum": ((3, 5), (5, 2))}.items():
        yield name, (linear, [torch.randn(shape, generator=draw) for shape in shapes])


def gradients(operator, inputs, compiled):
    """Return the output, and the gradients of the sum of its squares."""
    function = torch.compile(operator, fullgraph=True, backend="aot_eager") if compiled else operator
    leaves = [x.detach().requires_grad_() for x in inputs]
    y = function(*leaves)
    (y * y).sum().backward()
    return [y.detach(), *(leaf.grad for leaf in leaves)]


def main(rank, count, store, compiled):
    """Compare each operator with one process."""
    warnings.simplefilter("ignore", polyop.UninitialisedWarning)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=int(rank), world_size=int(count))
    mesh = init_device_mesh("cpu", (int(count),))
    calls = {s.name: (s.operator, [*map(torch.from_numpy, s.inputs)]) for s in twelve_operators(uneven=True)}
    calls |= modules()
    for name, layouts in LAYOUTS.items():
        operator, inputs = calls[name]
        rows = zip(inputs, layouts, strict=True)
        sharded = [distribute_tensor(x, mesh, placements) for x, placements in rows]
        expected = gradients(operator, inputs, compiled=False)
        results = gradients(operator, sharded, compiled == "compiled")
        for result, value in zip(results, expected, strict=True):
            torch.testing.assert_close(result.full_tensor(), value)
        print(name)
    dist.destroy_process_group()


if __name__ == "__main__":
    faulthandler.enable()
    main(*sys.argv[1:])
    sys.stdout.flush()
    # a thread of gloo that still frees a tensor while Python ends would end the process with an error
    os._exit(0)
