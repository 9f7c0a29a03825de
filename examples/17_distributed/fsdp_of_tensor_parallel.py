"""Both at once, on a mesh: parallel layers in a row of it, fully sharded along its columns.

``python fsdp_of_tensor_parallel.py --processes 4 [--compile]``, or with ``torchrun --nproc-per-node 4``
"""

import network
import processes
import tensor_parallel
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import parallelize_module


# [worker]
def worker(options):
    model = network.network()
    mesh = init_device_mesh("cpu", (dist.get_world_size() // 2, 2), mesh_dim_names=("batch", "columns"))
    for block in model[:2]:
        parallelize_module(block, mesh["columns"], tensor_parallel.PLAN)
    for layer in model:
        if options.compile:
            layer.compile(fullgraph=True)
        fully_shard(layer, mesh=mesh["batch"])
    fully_shard(model, mesh=mesh["batch"])
    x, y = (processes.share(tensor, mesh["batch"]) for tensor in network.batch())
    losses = network.train(model, x, y, lambda loss: processes.mean(loss, mesh["batch"]))
    processes.compare(losses)


# [/worker]

if __name__ == "__main__":
    processes.start(worker)
