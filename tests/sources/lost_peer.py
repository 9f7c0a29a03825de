"""Trains in several processes, of which the last is lost within a kernel: ``lost_peer.py RANK WORLD STORE HOW MODEL``.

A process that is not lost prints the error of its peer's loss, calls the operators again, and ends with 3.
"""

import os
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

import polyop

RANK, WORLD, STORE, HOW, MODEL = int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]
calls = []


def scale(w):
    calls.append(0)
    if len(calls) == 3 and RANK == WORLD - 1:
        print("lost", flush=True)
        if HOW == "exits":
            os._exit(7)
        if HOW == "raises":
            raise ValueError("no such scale")
        time.sleep(600)
    return w * 2


scaled = polyop.operator(
    "lost_peer::scaled(Tensor w) -> Tensor",
    scale,
    dims="... -> ...",
    parallel="...",
    gradient=lambda w, out, dout: (dout * 2,),
)


@polyop.kernel
def squares(x):
    y = output_tensor(x.shape, x.dtype)  # noqa: F821 - a word of the loop language
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * x[i, j]
    return y


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(300, 300))

    def forward(self, x):
        return squares(x @ scaled(self.weight))


dist.init_process_group(
    "gloo", init_method=f"file://{STORE}", rank=RANK, world_size=WORLD, timeout=timedelta(seconds=5)
)
net = Net()
x = torch.ones(300, 300)
if MODEL == "ddp":
    net = DistributedDataParallel(net)
else:
    mesh = init_device_mesh("cpu", (WORLD,))
    if MODEL == "fsdp":
        fully_shard(net, mesh=mesh)
    else:  # the product is partial, so squares begins with a reduce-scatter
        net.weight = torch.nn.Parameter(distribute_tensor(net.weight, mesh, [Shard(0)]))
        x = distribute_tensor(x, mesh, [Replicate()])
try:
    for _ in range(5):
        net(x).sum().backward()
except RuntimeError as problem:
    print(f"{type(problem).__name__}: {problem}")
    assert scaled(squares(torch.full((2, 2), 3.0))).tolist() == [[18.0, 18.0]] * 2
    print("the operators work", flush=True)
    sys.exit(3)
