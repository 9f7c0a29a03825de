"""Tensor parallel: every process has the whole batch, and its columns of the hidden layer.

``python tensor_parallel.py [--processes 4] [--compile]``, or with ``torchrun --nproc-per-node 4``
"""

import network
import processes
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    parallelize_module,
)

# [plan]
WHOLE = Replicate()
PLAN = {
    "gated": PrepareModuleInput(input_layouts=WHOLE, desired_input_layouts=WHOLE),  # backwards: an all-reduce
    "gated.gate": ColwiseParallel(use_local_output=False),  # DTensors, of which a process has its columns
    "gated.value": ColwiseParallel(use_local_output=False),
    "gated.down": RowwiseParallel(),  # forwards: an all-reduce
}
# [/plan]


# [worker]
def worker(options):
    model = network.network()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for block in model[:2]:
        parallelize_module(block, mesh, PLAN)
    compiled = torch.compile(model, fullgraph=True) if options.compile else model
    x, y = network.batch()
    processes.compare(network.train(compiled, x, y))
    assert processes.collectives(model, x) == {"all_reduce": 2 + 2}  # of two blocks; the operators need none


# [/worker]

if __name__ == "__main__":
    processes.start(worker)
