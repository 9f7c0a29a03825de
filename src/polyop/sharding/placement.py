"""How a tensor is laid out over the devices of one mesh axis, in PyTorch's words.

    Shard(0)         each device has a slice along dimension 0
    Replicate()      each device has the whole tensor
    Partial("sum")   each device has a tensor of the whole's shape; their sum is the tensor

A tensor on a mesh has one placement for each axis of the mesh.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shard:
    """A slice along one dimension of the tensor; ``dim`` counts from the front."""

    dim: int

    def __str__(self) -> str:
        """Return ``S(0)``."""
        return f"S({self.dim})"


@dataclass(frozen=True, slots=True)
class Replicate:
    """The whole tensor on each device."""

    def __str__(self) -> str:
        """Return ``R``."""
        return "R"


@dataclass(frozen=True, slots=True)
class Partial:
    """A part of each element; ``op`` is what combines them: ``"sum"``, ``"max"`` or ``"min"``."""

    op: str = "sum"

    def __str__(self) -> str:
        """Return ``P(sum)``."""
        return f"P({self.op})"


Placement = Shard | Replicate | Partial
Placements = tuple[Placement, ...]
"""Of one tensor: one for each axis of the mesh."""
REPLICATE = Replicate()


def placements_text(placements: Sequence[Placement]) -> str:
    """Return the placements of one tensor on a mesh.

    >>> placements_text((Shard(0), REPLICATE))
    '[S(0), R]'
    """
    return f"[{', '.join(map(str, placements))}]"
