"""Calls on a mesh of which some axes are manual, while XLA splits along another.

    jax.shard_map(f, mesh=mesh, axis_names={"a"}, ...)     mesh a=2, b=4: XLA splits f along b

XLA splits such a call in each group of devices that differ in ``b`` alone, and numbers the devices of a group
from 0. So the shardings that it passes, and takes, are those on the mesh of a group, without names. The
program of a device runs on the whole mesh, so its collectives name ``b``.

Where XLA splits along several axes, the order in which it numbers the devices of a group follows from the
sharding of each call, and nothing says which it is. A collective would then meet other slices than it names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec


@dataclass(frozen=True)
class PartlyManual:
    """The whole mesh, and the mesh of a group: one axis along which XLA splits."""

    whole: Any
    group: Any

    @classmethod
    def of(cls, context: Any) -> PartlyManual | None:
        """Return the meshes of a program that is lowered; None if no axis is manual, or several are not."""
        axes = context.module_context.axis_context
        manual = getattr(axes, "manual_axes", None)
        if not manual:
            return None
        names = [name for name, size in axes.mesh.shape.items() if name not in manual and size > 1]
        if len(names) != 1:
            return None
        index = tuple(slice(None) if name in names else 0 for name in axes.mesh.axis_names)
        return cls(axes.mesh, Mesh(np.asarray(axes.mesh.devices)[index], names))

    def named(self, value: Any) -> Any:
        """Return the type of an array with its sharding on the mesh of a group."""
        local = value.sharding.shard_shape(value.shape)
        (name,) = self.group.axis_names
        split = (name if part != size else None for part, size in zip(local, value.shape, strict=True))
        sharding = NamedSharding(self.group, PartitionSpec(*split))
        return jax.ShapeDtypeStruct(value.shape, value.dtype, sharding=sharding)
