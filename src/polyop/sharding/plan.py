"""``plan``: how a call runs on a mesh, given how its tensors are laid out, with the least communication.

For each axis of the mesh one strategy of the rule is chosen. All combinations are tried: there are few.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..core.spec import Spec
from .placement import REPLICATE, Partial, Placement, Placements, Shard
from .ranges import halo_size
from .rule import AxisStrategy, ShardingRule, sizes_along
from .transition import Collective, is_possible, transition


@dataclass(frozen=True)
class Plan:
    """How one call runs on a mesh.

    ``strategies`` has one for each mesh axis. ``inputs`` has the placements that each flat input is brought
    to, and ``outputs`` those that the results have. ``collectives`` are what that takes; those that bring
    outputs to a wanted layout are among them.
    """

    strategies: tuple[AxisStrategy, ...]
    inputs: tuple[Placements, ...]
    outputs: tuple[Placements, ...]
    collectives: tuple[Collective, ...]

    @property
    def bytes(self) -> int:
        """The bytes that a device receives."""
        return sum(collective.bytes for collective in self.collectives)


def plan(
    rule: ShardingRule,
    mesh: Sequence[int],
    inputs: Sequence[Placements],
    outputs: Sequence[Placements | None] = (),
    *,
    fixed: Sequence[int] = (),
    equal_chunks: bool = False,
) -> Plan:
    """Return the plan that moves the fewest bytes.

    ``mesh`` has the number of devices along each of its axes. ``inputs`` are the placements that the flat
    inputs have; ``outputs`` are those that the results must get, or None where any will do. Of two plans with
    equal bytes, one with fewer partial outputs and fewer changes comes first: a device does not compute more
    of an output than it gets.

    ``fixed`` are the numbers of inputs that must stay as they are: those that are written in place. Raises
    ``LookupError`` if one has to be moved.

    ``equal_chunks`` says that a framework cuts inputs into equal chunks only. Then a dimension may be split
    along several mesh axes as along one, also with a halo.
    """
    wanted = tuple(outputs) or (None,) * len(rule.outputs)
    choices = combinations(rule, mesh, equal_chunks=equal_chunks)
    rows = (plan_with(rule, tuple(mesh), strategies, inputs, wanted) for strategies in choices)
    plans = [row for row in rows if row is not None and all(row.inputs[k] == inputs[k] for k in fixed)]
    if not plans:
        raise LookupError(f"{rule.operator}: no strategy leaves the inputs {list(fixed)} where they are")

    def cost(one: Plan) -> tuple[int, ...]:
        later = _later_bytes(one, rule, mesh, wanted)
        return (one.bytes, *later, _changes(one.outputs, wanted), _changes(inputs, one.inputs))

    return min(plans, key=cost)


def combinations(
    rule: ShardingRule, mesh: Sequence[int], *, equal_chunks: bool = False
) -> Iterator[tuple[AxisStrategy, ...]]:
    """Yield one strategy for each mesh axis, where these can be combined."""
    for strategies in itertools.product(rule.strategies, repeat=len(mesh)):
        if not _can_be_combined(strategies, equal_chunks=equal_chunks):
            continue
        if equal_chunks and _is_uneven(rule, strategies, mesh):
            continue
        if all(map(_has_room, strategies, mesh)):
            yield strategies


def _is_uneven(rule: ShardingRule, strategies: Sequence[AxisStrategy], mesh: Sequence[int]) -> bool:
    """Whether an input is split into chunks of different sizes."""
    counts: dict[str, int] = {}
    for strategy, count in zip(strategies, mesh, strict=True):
        counts[strategy.name] = counts.get(strategy.name, 1) * count
    sizes = ((s, size) for s in strategies if s.name for size in sizes_along(s.inputs, rule.inputs))
    return any(size % counts[strategy.name] for strategy, size in sizes)


def _has_room(strategy: AxisStrategy, count: int) -> bool:
    """Whether the dimension can be split at all: one of size 0 or 1 stays whole."""
    return not strategy.name or count == 1 or strategy.size > 1


def _can_be_combined(strategies: Sequence[AxisStrategy], *, equal_chunks: bool) -> bool:
    """Whether strategies hold together: a slice knows its place along one axis, a halo is cut once.

    A maximum of sums is not the sum of maxima, so an output is combined in one way.
    """
    split = [strategy for strategy in strategies if strategy.name]
    if sum(strategy.placed for strategy in split) > 1:
        return False
    names = [strategy.name for strategy in split]
    if any(names.count(s.name) > 1 and ((s.has_halo and not equal_chunks) or s.placed) for s in split):
        return False
    columns = zip(*(strategy.outputs for strategy in strategies), strict=True)
    return all(len({one.op for one in column if isinstance(one, Partial)}) <= 1 for column in columns)


def plan_with(
    rule: ShardingRule,
    mesh: tuple[int, ...],
    strategies: tuple[AxisStrategy, ...],
    inputs: Sequence[Placements],
    wanted: Sequence[Placements | None],
) -> Plan | None:
    """Return the plan with these strategies, or None if an input cannot get its layout."""
    needed = _columns([strategy.inputs for strategy in strategies], len(rule.inputs))
    results = _columns([strategy.outputs for strategy in strategies], len(rule.outputs))
    pairs = [*zip(inputs, needed, strict=True)]
    pairs += [(result, want) for result, want in zip(results, wanted, strict=True) if want is not None]
    if not all(is_possible(a, b) for source, target in pairs for a, b in zip(source, target, strict=True)):
        return None
    collectives: list[Collective] = []
    for number, (spec, source, target) in enumerate(zip(rule.inputs, inputs, needed, strict=True)):
        collectives += transition(f"input {number}", spec_bytes(spec), mesh, source, target)
        collectives += _halo(f"input {number}", rule, spec, mesh, strategies, target)
    for number, (spec, result, want) in enumerate(zip(rule.outputs, results, wanted, strict=True)):
        if want is not None:
            collectives += transition(f"output {number}", spec_bytes(spec), mesh, result, want)
    return Plan(strategies, needed, results, tuple(collectives))


def _columns(rows: Sequence[tuple[Placement, ...]], count: int) -> tuple[Placements, ...]:
    """Return the placements of each tensor; ``rows`` has those of all tensors for each mesh axis."""
    return tuple(tuple(row[number] for row in rows) for number in range(count))


def _halo(
    tensor: str,
    rule: ShardingRule,
    spec: Spec,
    mesh: Sequence[int],
    strategies: Sequence[AxisStrategy],
    placements: Placements,
) -> Iterator[Collective]:
    """Yield the exchange of neighbours along each dimension that needs one; a later one has the corners.

    A dimension that is split along several mesh axes is named by the first of them.
    """
    shape = _local_shape(spec, mesh, placements)
    for axis, (strategy, placement) in enumerate(zip(strategies, placements, strict=True)):
        axes = [i for i, other in enumerate(strategies) if other == strategy and mesh[i] > 1]
        reads = strategy.has_halo or strategy.placed  # a slice of a shorter tensor may begin elsewhere
        if reads and isinstance(placement, Shard) and axes[:1] == [axis]:
            count = math.prod(mesh[i] for i in axes)
            received = halo_size(rule, strategy, count, spec.shape[placement.dim])
            if received:
                others = math.prod(size for dim, size in enumerate(shape) if dim != placement.dim)
                yield Collective("permute", axis, tensor, received * others * spec.dtype.itemsize)
                shape[placement.dim] += received


def _local_shape(spec: Spec, mesh: Sequence[int], placements: Placements) -> list[int]:
    """Return the shape of the largest part that a device has of a tensor."""
    shape = list(spec.shape)
    for count, placement in zip(mesh, placements, strict=True):
        if isinstance(placement, Shard):
            shape[placement.dim] = -(-shape[placement.dim] // count)
    return shape


def _later_bytes(
    one: Plan, rule: ShardingRule, mesh: Sequence[int], wanted: Sequence[Placements | None]
) -> tuple[int, int]:
    """Return what it takes to combine the partial outputs that stay partial, and how many there are."""
    collectives: list[Collective] = []
    for spec, placements, want in zip(rule.outputs, one.outputs, wanted, strict=True):
        if want is None:
            target = tuple(REPLICATE if isinstance(p, Partial) else p for p in placements)
            collectives += transition("", spec_bytes(spec), mesh, placements, target)
    return sum(collective.bytes for collective in collectives), len(collectives)


def _changes(sources: Sequence[Placements], targets: Sequence[Placements | None]) -> int:
    """Return how many placements differ; None may be any."""
    rows = [(a, b) for a, b in zip(sources, targets, strict=True) if b is not None]
    return sum(a != b for source, target in rows for a, b in zip(source, target, strict=True))


def spec_bytes(spec: Spec) -> int:
    """Return the bytes of a whole tensor."""
    size: int = math.prod(spec.shape) * spec.dtype.itemsize
    return size
