"""The collectives that DTensors run, with the bytes that this device receives in ring algorithms.

    with Received() as received:
        tensor.redistribute(mesh, placements)
    received.rows       [("all-gather", 128), ...] in the order of the program
    received.by_kind    {"all-gather": 128}

A fake process group of one process will do. Bytes are those of :mod:`polyop.sharding.transition`.
"""

import dataclasses
import math

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.utils._python_dispatch import TorchDispatchMode

from measured_operators import by_kind
from polyop.sharding import placement as own


class Received(TorchDispatchMode):
    """Lists the collectives of this device: their kinds and bytes."""

    def __init__(self):
        super().__init__()
        self.rows = []

    @property
    def by_kind(self):
        """The bytes of each kind of collective, without those of 0 bytes."""
        total = {}
        for kind, received in self.rows:
            if received:
                total[kind] = total.get(kind, 0) + received
        return total

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(issubclass(kind, DTensor) for kind in types):
            return NotImplemented  # DTensor comes first: it calls with local tensors
        row = self.cost(func, args)
        if row is not None:
            self.rows.append(row)
        if func is torch.ops._c10d_functional.all_to_all_single.default and not args[0].numel():
            return args[0].new_empty(
                (sum(args[1]), *args[0].shape[1:])
            )  # a fake group refuses to send nothing
        return func(*args, **(kwargs or {}))

    def cost(self, func, args):
        name = func._schema.name.split("::")[1]
        size = args[0].numel() * args[0].element_size() if args and isinstance(args[0], torch.Tensor) else 0
        match name:
            case "all_reduce":
                count = self.group(args[2])
                return "all-reduce", 2 * size * (count - 1) // count
            case "all_gather_into_tensor":
                return "all-gather", size * (args[1] - 1)
            case "reduce_scatter_tensor":
                return "reduce-scatter", size * (args[2] - 1) // args[2]
            case "shard_dim_alltoall":
                count = self.group(args[3])
                return "all-to-all", size * (count - 1) // count
            case "all_to_all_single":  # edges: nothing is sent to the device itself
                return "permute", sum(args[1]) * math.prod(args[0].shape[1:]) * args[0].element_size()
        return None

    @staticmethod
    def group(name):
        return dist.distributed_c10d._resolve_process_group(name).size()


def torch_placements(placements):
    """polyop's placements as PyTorch's."""
    names = {
        own.Shard: lambda p: Shard(p.dim),
        own.Replicate: lambda p: Replicate(),
        own.Partial: lambda p: Partial(p.op),
    }
    return [names[type(p)](p) for p in placements]


def on_cpu(collectives, sizes):
    """The collectives as PyTorch runs them on CPUs: an all-to-all is an all-gather, which is then cut."""
    return [
        dataclasses.replace(one, kind="all-gather", bytes=one.bytes * sizes[one.axis])
        if one.kind == "all-to-all"
        else one
        for one in collectives
    ]


def bytes_on_cpu(collectives, sizes):
    """The bytes of each kind of collective as PyTorch runs them on CPUs."""
    return by_kind(on_cpu(collectives, sizes))
