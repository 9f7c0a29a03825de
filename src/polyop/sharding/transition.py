"""What brings a tensor from one layout to another: collectives, and the bytes that a device receives.

from       to         collective        bytes received, of n devices and a local tensor of L bytes
S(i)       R          all-gather        L * (n - 1)                  each of the other slices
P          R          all-reduce        2 * L * (n - 1) / n          a ring: reduce-scatter, then all-gather
P          S(i)       reduce-scatter    L * (n - 1) / n
S(i)       S(j)       all-to-all        L * (n - 1) / n
R          S(i)       none              each device keeps its slice
R          P(sum)     none              one device keeps the tensor, the others have zeros
S(i)       S(i)       permute           the neighbours that a halo reads

Mesh axes change one after the other. Where several split one dimension, their slices are nested, the first
axis outermost. Before an outer one changes, the inner ones are gathered; they are cut again in the end.

Sources: the order of ``generate_greedy_transform_infos`` in ``torch.distributed.tensor``; the bytes of ring
algorithms, as in R. Thakur et al., "Optimization of Collective Communication Operations in MPICH" (2005).
Sizes that the devices do not divide are rounded up.
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

    >>> for one in transition("x", 480, (2, 2), (Shard(0), Shard(0)), (REPLICATE, Shard(0))):
    ...     print(one.kind, one.axis, one.bytes)
    all-gather 1 120
    all-gather 0 240
    """
    current = list(source)
    for axis, placement in steps(mesh, source, target):
        if mesh[axis] > 1:
            local = local_bytes(size, mesh, tuple(current))
            kind, received = _step(current[axis], placement, local, mesh[axis])
            if kind:
                yield Collective(kind, axis, tensor, received)
        current[axis] = placement


def steps(mesh: Sequence[int], source: Placements, target: Placements) -> Iterator[tuple[int, Placement]]:
    """Yield the mesh axes that change, one after the other, with the placement that each gets.

    A slice of a slice is along an inner (later) mesh axis, so inner axes change first. One that would split a
    dimension that outer axes still split otherwise is whole in between, and is cut in the end.
    """
    current = list(source)
    if any(isinstance(one, Shard) and count > 1 for one, count in zip(source, mesh, strict=True)):
        for axis in reversed(range(len(mesh))):
            placement = target[axis]
            if isinstance(placement, Shard) and _outer(current, axis, placement) != _outer(
                target, axis, placement
            ):
                placement = REPLICATE
            if current[axis] != placement:
                yield axis, placement
                current[axis] = placement
    for axis, placement in enumerate(target):
        if current[axis] != placement:
            yield axis, placement


def _outer(placements: Sequence[Placement], axis: int, split: Shard) -> list[int]:
    """Return the mesh axes before ``axis`` that split the same dimension."""
    return [outer for outer in range(axis) if placements[outer] == split]


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
