"""Placements of PyTorch and of polyop, and DTensors to local tensors and back.

The specs of DTensors are not public, nor is redistribution below autograd. Where PyTorch lacks them,
``offer.py`` says so, and operators do not run on DTensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.distributed.tensor._redistribute import redistribute_local_tensor
from torch.distributed.tensor._utils import ExplicitRedistributionContext

from ....sharding import placement as own


def own_placements(spec: DTensorSpec) -> own.Placements:
    """Return the placements of a DTensor; one that has no equal is named after its class.

    No strategy has such a placement, so the tensor is brought to another one.
    """
    return tuple(map(_own_placement, spec.placements))


def _own_placement(placement: Any) -> own.Placement:
    if type(placement) is Shard:
        return own.Shard(placement.dim)
    if type(placement) is Replicate:
        return own.REPLICATE
    if type(placement) is Partial:
        return own.Partial(placement.reduce_op)
    if hasattr(placement, "split_factor"):  # a slice in several pieces: its bytes are those of a slice
        return own.Shard(placement.dim)
    return own.Partial(type(placement).__name__)


def torch_placements(placements: Sequence[own.Placement]) -> tuple[Any, ...]:
    """Return placements as PyTorch has them."""
    return tuple(
        Shard(p.dim)
        if isinstance(p, own.Shard)
        else Partial(p.op)
        if isinstance(p, own.Partial)
        else Replicate()
        for p in placements
    )


def spec_with(mesh: Any, placements: Sequence[own.Placement], meta: TensorMeta) -> DTensorSpec:
    """Return the spec of a DTensor on ``mesh``."""
    return DTensorSpec(mesh, torch_placements(placements), tensor_meta=meta)


def dense_meta(shape: Sequence[int], dtype: torch.dtype) -> TensorMeta:
    """Return what a spec says of a whole dense tensor."""
    strides = []
    stride: Any = 1
    for size in reversed(shape):
        strides.append(stride)
        stride = stride * max(size, 1)
    return TensorMeta(torch.Size(shape), tuple(reversed(strides)), dtype)


def redistributed(local: torch.Tensor, source: DTensorSpec, target: DTensorSpec, name: str) -> torch.Tensor:
    """Return the local tensor of another layout; this communicates.

    Raises what PyTorch raises within ``ExplicitRedistributionContext``.
    """
    observe(source, target, name)
    return redistribute_local_tensor(local, source, target)


def observe(source: DTensorSpec, target: DTensorSpec, name: str) -> None:
    """Tell PyTorch of a redistribution; it raises within ``ExplicitRedistributionContext``."""
    text = f"{name}: an argument is redistributed from {source.placements} to {target.placements}"
    ExplicitRedistributionContext.observe_redistribution(source, target, text)


def wrap(local: torch.Tensor, spec: DTensorSpec) -> DTensor:
    """Return the DTensor with this local tensor."""
    return DTensor(local, spec, requires_grad=False)
