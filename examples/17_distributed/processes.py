"""Start a function in several processes, and compare their losses with those of one process."""

import argparse
import os
import sys
import tempfile

import network
import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.tensor.debug import CommDebugMode


def start(worker):
    """Call ``worker(options)`` in processes that gloo connects; torchrun has started them already."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--compile", action="store_true", help="under torch.compile(fullgraph=True)")
    options = parser.parse_args()
    if "TORCHELASTIC_RUN_ID" in os.environ:
        _connected(worker, options)
        return
    with tempfile.TemporaryDirectory() as folder:
        arguments = worker, options, f"file://{folder}/store"
        torch.multiprocessing.spawn(_spawned, arguments, nprocs=options.processes)


def _spawned(rank, worker, options, store):
    _connected(worker, options, init_method=store, rank=rank, world_size=options.processes)
    sys.stdout.flush()
    os._exit(
        0
    )  # without Python's end: a thread of gloo that is still there then has aborted a process, rarely


def _connected(worker, options, **where):
    dist.init_process_group("gloo", **where)
    try:
        worker(options)
    finally:
        dist.destroy_process_group()


def mean(loss, mesh=None):
    """Return the mean over the processes, or over those of a mesh."""
    group = None if mesh is None else mesh.get_group()
    dist.all_reduce(loss, group=group)
    return loss / dist.get_world_size(group)


def share(tensor, mesh=None):
    """Return this process's rows of a batch."""
    group = None if mesh is None else mesh.get_group()
    return tensor.chunk(dist.get_world_size(group))[dist.get_rank(group)]


def collectives(model, x):
    """Return how often each collective runs, forwards and backwards."""
    with CommDebugMode() as mode:
        model(x.clone().requires_grad_()).sum().backward()
    return {str(name).split(".")[-1]: count for name, count in mode.get_comm_counts().items()}


def compare(losses):
    """Check that the losses are those of one process with the whole batch; the first process prints them."""
    alone = network.train(network.network(), *network.batch())
    np.testing.assert_allclose(losses, alone, rtol=1e-5)
    if dist.get_rank() == 0:
        print("one process: ", *(f"{loss:.6f}" for loss in alone))
        print(f"{dist.get_world_size()} processes: ", *(f"{loss:.6f}" for loss in losses))
