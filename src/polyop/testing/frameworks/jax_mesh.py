"""JAX's sharded arrays, on the devices of this process. Import this file only where JAX is used."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ...sharding.placement import Partial, Placement, Shard
from ...sharding.rule import ShardingRule
from ..case import Array, Case, NotRunError
from . import jax as plain

_COUNTS = (2, 3)
"""Slices have one size: what two devices do not divide, three may."""


@contextlib.contextmanager
def devices() -> Iterator[tuple[int, ...]]:
    """Yield the numbers of devices that can be used."""
    counts = tuple(count for count in _COUNTS if count <= len(jax.devices("cpu")))
    if not counts:
        flag = f"XLA_FLAGS=--xla_force_host_platform_device_count={_COUNTS[-1]}"
        raise NotRunError(f"JAX has one CPU device: start Python with {flag}")
    yield counts


def can_place(rule: ShardingRule, row: Sequence[Placement], count: int) -> bool:
    """Whether JAX has arrays with these placements: none is partial, and all slices have one size."""
    return not any(
        isinstance(placement, Partial) or (isinstance(placement, Shard) and spec.shape[placement.dim] % count)
        for spec, placement in zip(rule.inputs, row, strict=True)
    )


def on_mesh(
    case: Case, row: Sequence[Placement], count: int, cotangents: Sequence[Array]
) -> tuple[list[Array], dict[str, Array | None]]:
    """Return the results and the input gradients of a compiled call on arrays with these placements."""
    mesh = Mesh(np.array(jax.devices("cpu")[:count]), ("devices",))

    def placed(value: Array, placement: Placement) -> Any:
        axes: list[str | None] = [None] * np.ndim(value)
        if isinstance(placement, Shard):
            axes[placement.dim] = "devices"
        return jax.device_put(jnp.asarray(value), NamedSharding(mesh, PartitionSpec(*axes)))

    with jax.enable_x64(True):
        flat = [placed(value, p) for (_, value), p in zip(case.tensors(), row, strict=True)]
        results = plain.arrays(jax.jit(lambda inputs: plain.call(case, inputs))(flat))
        if not cotangents:
            return results, {}
        pull, grads = plain.pull_of(case, cotangents)
        return results, plain.named(case, jax.jit(pull)(flat, grads))
