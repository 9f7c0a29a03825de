"""Trains a network two steps under FSDP2: ``fsdp_program.py RANK WORLD FILE``; both ranks print the loss."""

import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import polyop

scaled = polyop.operator(
    "fsdp::scaled(Tensor x) -> Tensor",
    lambda x: x * 2,
    infer="x",
    gradient=lambda x, out, dout: (scaled(dout),),
)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4, 4))

    def forward(self, x):
        return x @ scaled(self.weight)


rank, world, file = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=world)
net = Net()
fully_shard(net, mesh=init_device_mesh("cpu", (world,)))  # frees the whole weight after every use
optimiser = torch.optim.SGD(net.parameters(), lr=0.125)
for _ in range(2):
    optimiser.zero_grad()
    loss = net(torch.ones(2, 4)).sum()
    loss.backward()
    optimiser.step()
    print(loss.item())
dist.destroy_process_group()
