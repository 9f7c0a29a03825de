"""Move a tensor from one layout to another in the program of a device, step by step along mesh axes.

XLA does that well where one mesh axis changes. Where several do, it often gathers the whole tensor first::

    P(("x", "y"), None) -> P(None, "y")      XLA: all-gather along both, then cut
                                             here: all-to-all along y, then all-gather along x
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from jax import lax

from ...sharding.placement import Placement, Placements, Shard
from ...sharding.transition import transition


class Move(NamedTuple):
    """One step: the number of a mesh axis, and the placements along it before and after."""

    axis: int
    source: Placement
    target: Placement


def moves(
    source: Placements, target: Placements, shape: Sequence[int], sizes: Sequence[int]
) -> tuple[Move, ...]:
    """Return the steps between two layouts that are not partial; empty where that is better left to XLA.

    All slices are contiguous and equal: a slice of a slice is along a minor mesh axis. Of all orders of the
    axes the one that moves the fewest bytes is taken, and no more than
    :func:`~polyop.sharding.transition.transition` counts.

    >>> from polyop.sharding.placement import REPLICATE
    >>> steps = moves((Shard(0), Shard(0)), (REPLICATE, Shard(1)), (8, 8), (2, 4))
    >>> [(step.axis, str(step.source), str(step.target)) for step in steps]
    [(1, 'S(0)', 'S(1)'), (0, 'S(0)', 'R')]
    """
    changed = [axis for axis, size in enumerate(sizes) if size > 1 and source[axis] != target[axis]]
    if len(changed) < 2:
        return ()
    total = math.prod(shape)
    rows = (
        tuple(Move(axis, source[axis], target[axis]) for axis in order)
        for order in itertools.permutations(changed)
    )
    possible = [steps for steps in rows if _are_possible(steps, source, shape, sizes)]
    counted = sum(one.bytes for one in transition("", total, sizes, source, target))
    best = min(possible, key=lambda steps: _elements(steps, source, total, sizes), default=())
    return best if _elements(best, source, total, sizes) <= counted else ()


def moved(value: Any, steps: Iterable[Move], axes: Sequence[str], sizes: Sequence[int]) -> Any:
    """Return the device's shard of a tensor after the steps; ``axes`` are the names of the mesh axes."""
    for axis, source, target in steps:
        name = axes[axis]
        if isinstance(source, Shard) and isinstance(target, Shard):
            value = lax.all_to_all(value, name, target.dim, source.dim, tiled=True)
        elif isinstance(source, Shard):
            value = lax.all_gather(value, name, axis=source.dim, tiled=True)
        elif isinstance(target, Shard):
            chunk = value.shape[target.dim] // sizes[axis]
            value = lax.dynamic_slice_in_dim(value, lax.axis_index(name) * chunk, chunk, target.dim)
    return value


def _are_possible(
    steps: Sequence[Move], source: Placements, shape: Sequence[int], sizes: Sequence[int]
) -> bool:
    """Whether each step takes away, or adds, the most minor of the axes that split a dimension."""
    current = list(source)
    if not _are_equal(current, shape, sizes):
        return False
    for axis, before, after in steps:
        minor = [one for i, one in enumerate(current) if i > axis]
        if isinstance(before, Shard) and before in minor:
            return False
        if isinstance(after, Shard) and after in minor:
            return False
        current[axis] = after
        if not _are_equal(current, shape, sizes):
            return False
    return True


def _are_equal(placements: Sequence[Placement], shape: Sequence[int], sizes: Sequence[int]) -> bool:
    """Whether all devices have slices of one size."""
    counts = [1] * len(shape)
    for placement, size in zip(placements, sizes, strict=True):
        if isinstance(placement, Shard):
            counts[placement.dim] *= size
    return not any(size % count for size, count in zip(shape, counts, strict=True))


def _elements(steps: Sequence[Move], source: Placements, total: int, sizes: Sequence[int]) -> int:
    """Return how many elements a device receives."""
    current, received = list(source), 0
    for axis, _, after in steps:
        step = [*current[:axis], after, *current[axis + 1 :]]
        received += sum(one.bytes for one in transition("", total, sizes, tuple(current), tuple(step)))
        current = step
    return received
