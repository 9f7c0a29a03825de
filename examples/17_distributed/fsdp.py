"""Fully sharded: every process keeps a share of each parameter, and has the whole of it only in use.

``python fsdp.py [--processes 4] [--compile]``, or ``torchrun --nproc-per-node 4 fsdp.py``
"""

import network
import processes
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor


# [worker]
def worker(options):
    model = network.network()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in model:
        if options.compile:
            layer.compile(fullgraph=True)
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    x, y = network.batch()
    losses = network.train(model, processes.share(x), processes.share(y), processes.mean)
    assert all(isinstance(parameter, DTensor) for parameter in model.parameters())  # shares again
    processes.compare(losses)


# [/worker]

if __name__ == "__main__":
    processes.start(worker)
