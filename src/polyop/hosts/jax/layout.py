"""``Layout``: JAX's shardings on one mesh to placements and back; the errors for sharded operands.

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

from ...core.errors import HostError
from ...sharding.placement import REPLICATE, Placement, Placements, Shard
from .site import Site


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


_HINT = (
    "call it inside jax.shard_map, which runs it once per shard, or give it the whole array "
    "(jax.device_put, jax.lax.with_sharding_constraint); dims= with parallel=, sum= or halo= declares which "
    'dimensions are split and how, and batch="elementwise" that an element of the outputs depends on the '
    "same element of the inputs only"
)
_NARROW_HINT = (
    "; a sum of 64-bit integers is split only with jax_enable_x64, as nobody would check what the devices "
    "add in 32 bits"
)


def sharding_error(site: Site, number: int, sharding: Any, dim: int | None = None) -> HostError:
    """Return the error for an operand of which the operator needs the whole.

    ``dim`` is the dimension in question; without it, the first that is split, if the sharding says which.
    """
    spec = getattr(sharding, "spec", None)
    if dim is None and spec is not None:
        dim = next((d for d, names in enumerate(spec) if axis_names(names)), None)
    where = "" if dim is None else f" along dimension {dim}"
    rule = f"{operand_name(site, number)} is sharded{where}, and nothing says how the operator is split there"
    seen = sharding if spec is None else spec
    hint = _HINT if site.wide else _HINT + _NARROW_HINT
    return HostError(site.operator.name, rule, seen, where=site.operator.origin, hint=hint)


def operand_name(site: Site, number: int) -> str:
    """Return how an error names a flat operand: ``argument x``, ``argument weights[1]``."""
    positions = site.by_argument(itertools.count())  # type: ignore[arg-type]
    rows = zip(site.operator.schema.arguments, positions, strict=True)
    for argument, position in rows:
        if position == number and position is not None:
            return f"argument {argument.name}"
        if isinstance(position, tuple) and number in position:
            return f"argument {argument.name}[{position.index(number)}]"
    raise IndexError(number)
