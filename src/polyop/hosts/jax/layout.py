"""``Layout``: JAX's shardings on one mesh to placements, and back.

    NamedSharding(mesh of 2 x 4, P(("x", "y"), None))    (Shard(0), Shard(0))

A dimension that is split along several mesh axes names them in an order, the major one first. All tensors of
a call get one order of the axes, so placements need no order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from ...sharding.placement import REPLICATE, Placement, Placements, Shard


@dataclass(frozen=True)
class Layout:
    """A mesh, and its axes in the order in which they split dimensions."""

    mesh: Any
    axes: tuple[str, ...]

    @classmethod
    def of(cls, mesh: Any, specs: Sequence[Any]) -> Layout:
        """Return the layout whose order is that of the most specs; the mesh's order where none says more."""
        splits = [names for spec in specs for names in map(axis_names, spec) if len(names) > 1]

        def broken(axes: tuple[str, ...]) -> int:
            return sum(sorted(names, key=axes.index) != list(names) for names in splits)

        orders = itertools.permutations(mesh.axis_names) if splits else [tuple(mesh.axis_names)]
        return cls(mesh, min(orders, key=broken))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return the number of devices along each axis."""
        return tuple(self.mesh.shape[name] for name in self.axes)

    def placements(self, spec: Any) -> Placements:
        """Return the placements of a tensor with this ``PartitionSpec``."""
        rows = {name: Shard(dim) for dim, names in enumerate(spec) for name in axis_names(names)}
        return tuple(rows.get(name, REPLICATE) for name in self.axes)

    def sharding(self, placements: Sequence[Placement], rank: int) -> NamedSharding:
        """Return the sharding of a tensor with these placements, none of which is partial."""
        rows = list(zip(self.axes, placements, strict=True))
        split = [tuple(name for name, one in rows if one == Shard(dim)) for dim in range(rank)]
        return NamedSharding(self.mesh, PartitionSpec(*(names or None for names in split)))

    def devices(self, axes: Sequence[str]) -> tuple[int, ...]:
        """Return the number of each device along some axes as ``ppermute`` counts: in the mesh's order."""
        ordered = sorted(axes, key=self.mesh.axis_names.index)
        numbers = np.arange(math.prod(self.mesh.shape[name] for name in axes))
        grid = numbers.reshape([self.mesh.shape[name] for name in ordered])
        return tuple(map(int, grid.transpose([ordered.index(name) for name in axes]).ravel()))


def axis_names(names: Any) -> tuple[str, ...]:
    """Return the mesh axes that one entry of a ``PartitionSpec`` names."""
    return () if names is None else (names,) if isinstance(names, str) else tuple(names)
