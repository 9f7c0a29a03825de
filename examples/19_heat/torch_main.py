"""The plate of main.py on four processes, each with a block of it as a DTensor.

``python torch_main.py [--mesh 4 1]``, or ``torchrun --nproc-per-node 4 torch_main.py``
"""

import argparse
import os
import tempfile

import numpy as np
import torch
import torch.distributed as dist
from heat import RATE, ROUNDS, STEPS, fit, step, target
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor


def worker(sizes):
    # [torch]
    mesh = init_device_mesh("cpu", sizes, mesh_dim_names=("rows", "columns"))
    goal = distribute_tensor(torch.from_numpy(target()), mesh, [Shard(0), Shard(1)])
    start = torch.zeros_like(goal).requires_grad_()
    losses = []
    for _ in range(ROUNDS):
        u = start
        for _ in range(STEPS):
            u = step(u)
        loss = ((u - goal) ** 2).sum()
        (gradient,) = torch.autograd.grad(loss, start)
        losses.append(float(loss.detach().full_tensor()))
        start = (start - RATE * gradient).detach().requires_grad_()
    # [/torch]
    alone, losses_alone = fit(target())
    np.testing.assert_allclose(start.full_tensor().detach().numpy(), alone, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(losses, losses_alone, rtol=1e-4)
    assert start.placements == (Shard(0), Shard(1))
    if dist.get_rank() == 0:
        count = dist.get_world_size()
        print(f"{count} processes: loss {losses[0]:.3f} -> {losses[-1]:.5f}, as in one process")


def connected(rank, sizes, **where):
    if rank is not None:
        where |= {"rank": rank, "world_size": sizes[0] * sizes[1]}
    dist.init_process_group("gloo", **where)
    try:
        worker(sizes)
    finally:
        dist.destroy_process_group()


def spawned(rank, sizes, store):
    connected(rank, sizes, init_method=store)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--mesh", type=int, nargs=2, default=(2, 2), metavar=("ROWS", "COLUMNS"))
    sizes = tuple(parser.parse_args().mesh)
    if "TORCHELASTIC_RUN_ID" in os.environ:  # torchrun has started the processes
        connected(None, sizes)
    else:
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # in each process, as torchrun does
        with tempfile.TemporaryDirectory() as folder:
            arguments = sizes, f"file://{folder}/store"
            torch.multiprocessing.spawn(spawned, arguments, nprocs=sizes[0] * sizes[1])
