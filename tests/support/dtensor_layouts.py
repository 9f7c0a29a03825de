"""DTensors of every layout on simulated devices, and back to the whole."""

import math

from torch.distributed._local_tensor import maybe_run_for_local_tensor
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor


def placements_of(x):
    """Every placement that a tensor can have along one axis of a mesh."""
    partial = [Partial("sum")] if x.is_floating_point() else []
    return [Replicate(), *map(Shard, range(x.dim())), *partial]


def laid_out(x, mesh, placements):
    """A DTensor of the whole ``x``; along a partial axis the devices have different parts of each element."""
    base = [Replicate() if isinstance(p, Partial) else p for p in placements]
    tensor = distribute_tensor(x, mesh, base)
    partial = [axis for axis, p in enumerate(placements) if isinstance(p, Partial)]
    if not partial:
        return tensor

    @maybe_run_for_local_tensor
    def part(coordinate, local):
        counts = [mesh.shape[axis] for axis in partial]
        shares = [2 * (coordinate[a] + 1) / (n * (n + 1)) for a, n in zip(partial, counts, strict=True)]
        return local * math.prod(shares)

    local = part(list(mesh.get_coordinate()), tensor.to_local())
    return DTensor.from_local(local, mesh, placements, run_check=False, shape=x.shape, stride=x.stride())


def whole(tensor):
    """The whole value of a DTensor; raises if devices that should have the same values differ."""
    full = tensor.full_tensor()
    return full.reconcile() if hasattr(full, "reconcile") else full


def as_tuple(result):
    return result if isinstance(result, tuple) else (result,)
