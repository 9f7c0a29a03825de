"""Sequence parallel: the norm runs on the process's rows, the gated layer on the process's columns.

``python sequence_parallel.py [--processes 4] [--compile]``, or with ``torchrun --nproc-per-node 4``
"""

import network
import processes
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

# [plan]
ROWS, WHOLE = Shard(0), Replicate()
BLOCK = {
    "norm": SequenceParallel(sequence_dim=0),
    "gated": PrepareModuleInput(input_layouts=ROWS, desired_input_layouts=WHOLE),  # all-gather
    "gated.gate": ColwiseParallel(use_local_output=False),
    "gated.value": ColwiseParallel(use_local_output=False),
    "gated.down": RowwiseParallel(output_layouts=ROWS, use_local_output=False),  # reduce-scatter
}
FIRST = PrepareModuleInput(input_layouts=WHOLE, desired_input_layouts=ROWS)
HEAD = PrepareModuleInput(input_layouts=ROWS, desired_input_layouts=WHOLE, use_local_output=True)
# [/plan]


# [worker]
def worker(options):
    model = network.network()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for block in model[:2]:
        parallelize_module(block, mesh, BLOCK)
    parallelize_module(model, mesh, {"0": FIRST, "2": HEAD})
    compiled = torch.compile(model, fullgraph=True) if options.compile else model
    x, y = network.batch()
    processes.compare(network.train(compiled, x, y))
    # backwards an all-gather is a reduce-scatter, and the other way round; the operators need none
    expected = {"all_gather_into_tensor": 3 + 2 + 1, "reduce_scatter_tensor": 2 + 2}
    assert processes.collectives(model, x) == expected


# [/worker]

if __name__ == "__main__":
    processes.start(worker)
