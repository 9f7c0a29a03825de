"""Data parallel: every process has the whole network and its rows of the batch; gradients are averaged.

``python ddp.py [--processes 4] [--compile]``, or ``torchrun --nproc-per-node 4 ddp.py``
"""

import network
import processes
import torch
from torch.nn.parallel import DistributedDataParallel


# [worker]
def worker(options):
    model = network.network()
    if options.compile:
        model = torch.compile(model, fullgraph=True)  # one graph, with the operators in it
    model = DistributedDataParallel(model)
    x, y = network.batch()
    losses = network.train(model, processes.share(x), processes.share(y), processes.mean)
    processes.compare(losses)


# [/worker]

if __name__ == "__main__":
    processes.start(worker)
