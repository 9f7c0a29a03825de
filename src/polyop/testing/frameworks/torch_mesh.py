"""PyTorch's DTensors on simulated devices, in this process. Import this file only where PyTorch is used."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.distributed

from ...sharding.placement import Partial, Placement, Shard
from ...sharding.rule import ShardingRule
from ..case import Array, Case, NotRunError
from .torch_tensors import to_arrays, to_torch

_COUNT = 3
"""Uneven slices of 4 elements, and an empty one of 2."""


@contextlib.contextmanager
def devices() -> Iterator[tuple[int, ...]]:
    """Make a process group without other processes; yield how many devices can be simulated."""
    try:
        from torch.distributed._local_tensor import LocalTensorMode
        from torch.testing._internal.distributed.fake_pg import FakeStore  # noqa: F401 - it registers "fake"
    except ImportError:
        raise NotRunError("this PyTorch does not simulate devices") from None
    if torch.distributed.is_initialized():
        raise NotRunError("this process has a process group already")
    torch.distributed.init_process_group("fake", rank=0, world_size=_COUNT)
    try:
        with LocalTensorMode(_COUNT):
            yield (_COUNT,)
    finally:
        torch.distributed.destroy_process_group()


def can_place(rule: ShardingRule, row: Sequence[Placement], count: int) -> bool:
    """Whether these placements can be tried: all can."""
    del rule, row, count
    return True


def on_mesh(
    case: Case, row: Sequence[Placement], count: int, cotangents: Sequence[Array]
) -> tuple[list[Array], dict[str, Array | None]]:
    """Return the results and the input gradients of a call on DTensors with these placements."""
    from torch.distributed.tensor import DTensor, Replicate, distribute_tensor, init_device_mesh

    mesh, remaining = init_device_mesh("cpu", (count,)), iter(row)
    tensors: dict[str, Any] = {}

    def placed(name: str, value: Array) -> Any:
        tensor, placement = to_torch(value, "cpu"), _placement(next(remaining))
        if placement.is_shard():
            tensors[name] = distribute_tensor(tensor, mesh, [placement])
        else:
            own = _addends(tensor, count) if placement.is_partial() else _copies(tensor, count)
            tensors[name] = DTensor.from_local(own, mesh, [placement], run_check=False)
        if cotangents and (tensor.is_floating_point() or tensor.is_complex()):
            tensors[name].requires_grad_()
        return tensors[name]

    outputs = case.call(case.map(placed))
    results = to_arrays([_whole(x) for x in outputs])
    leaves = {name: x for name, x in tensors.items() if x.requires_grad}
    pairs = [
        (x, distribute_tensor(to_torch(grad, "cpu"), mesh, [Replicate()]))
        for x, grad in zip(outputs, cotangents, strict=False)
        if x.requires_grad
    ]
    grads: dict[str, Array | None] = dict.fromkeys(tensors)
    if pairs and leaves:
        roots, weights = zip(*pairs, strict=True)
        own = torch.autograd.grad(roots, [*leaves.values()], weights, allow_unused=True)
        for name, grad in zip(leaves, own, strict=True):
            grads[name] = None if grad is None else to_arrays([_whole(grad)])[0]
    return results, grads


def _placement(placement: Placement) -> Any:
    from torch.distributed import tensor

    match placement:
        case Shard(dim):
            return tensor.Shard(dim)
        case Partial(op):
            return tensor.Partial(op)
    return tensor.Replicate()


def _addends(tensor: torch.Tensor, count: int) -> Any:
    """Return a tensor as the sum of what the devices have."""
    from torch.distributed._local_tensor import LocalTensor

    parts = [torch.ones_like(tensor) * k for k in range(1, count)]
    return LocalTensor(dict(enumerate([tensor - sum(parts), *parts])))


def _copies(tensor: torch.Tensor, count: int) -> Any:
    """Return a tensor of which each device has its own memory, to write in place."""
    from torch.distributed._local_tensor import LocalTensor

    return LocalTensor({k: tensor.clone() for k in range(count)})


def _whole(value: Any) -> Any:
    """Return the tensor that all devices agree on."""
    whole = value.full_tensor().detach()
    return whole.reconcile() if hasattr(whole, "reconcile") else whole
