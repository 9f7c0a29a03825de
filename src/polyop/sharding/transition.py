"""What brings a tensor from one layout to another: collectives, and the bytes that a device receives.

from       to         collective        bytes received, of n devices and a local tensor of L bytes
S(i)       R          all-gather        L * (n - 1)                  each of the other slices
P          R          all-reduce        2 * L * (n - 1) / n          a ring: reduce-scatter, then all-gather
P          S(i)       reduce-scatter    L * (n - 1) / n
S(i)       S(j)       all-to-all        L * (n - 1) / n
R          S(i)       none              each device keeps its slice
R          P(sum)     none              one device keeps the tensor, the others have zeros
S(i)       S(i)       permute           the neighbours that a halo reads

Source: the cost of ring algorithms, as in R. Thakur et al., "Optimization of Collective Communication
Operations in MPICH" (2005). Sizes that the devices do not divide are rounded up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .placement import REPLICATE, Partial, Placement, Placements, Replicate, Shard


@dataclass(frozen=True)
class Collective:
    """One collective of a call: its kind, the mesh axis (number or name), the tensor, the bytes received."""

    kind: str
    axis: int | str
    tensor: str
    bytes: int


def local_bytes(size: int, mesh: Sequence[int], placements: Placements) -> int:
    """Return the bytes of a device's part of a tensor of ``size`` bytes."""
    for count, placement in zip(mesh, placements, strict=True):
        if isinstance(placement, Shard):
            size = -(-size // count)
    return size


def transition(
    tensor: str, size: int, mesh: Sequence[int], source: Placements, target: Placements
) -> Iterator[Collective]:
    """Yield the collectives that bring a tensor of ``size`` bytes from one layout to another.

    Axes whose local tensor becomes smaller come first, so that the others move less.
    """
    local = local_bytes(size, mesh, source)
    axes = [axis for axis in range(len(mesh)) if source[axis] != target[axis] and mesh[axis] > 1]
    for axis in sorted(axes, key=lambda axis: _growth(source[axis], target[axis])):
        kind, received = _step(source[axis], target[axis], local, mesh[axis])
        if kind:
            yield Collective(kind, axis, tensor, received)
        growth = _growth(source[axis], target[axis])
        local = -(-local // mesh[axis]) if growth < 0 else local * mesh[axis] if growth > 0 else local


def _growth(source: Placement, target: Placement) -> int:
    """Return -1 if the local tensor becomes smaller, 1 if it becomes larger, else 0."""
    return int(isinstance(source, Shard)) - int(isinstance(target, Shard))


def _step(source: Placement, target: Placement, local: int, count: int) -> tuple[str, int]:
    """Return the kind of collective, empty for none, and the bytes that a device receives."""
    others = count - 1
    match source, target:
        case Shard(), Shard():
            return "all-to-all", local * others // count
        case Shard(), _:
            return "all-gather", local * others
        case Partial(), Shard():
            return "reduce-scatter", local * others // count
        case Partial(), Replicate():
            return "all-reduce", 2 * local * others // count
        case Partial(), Partial():
            return "all-reduce", 2 * local * others // count
    return "", 0


def is_possible(source: Placement, target: Placement) -> bool:
    """Whether a layout can become another one: a tensor becomes partial only if it is a sum."""
    return source == target or not isinstance(target, Partial) or (target.op == "sum" and source == REPLICATE)
