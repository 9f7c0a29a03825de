"""``ShardingRule``: the ways in which one call can be split over the devices of a mesh axis.

    dims="b i, i o -> b o", parallel="b o", sum="i"

    name    inputs        outputs
            R,    R    -> R
    b       S(0), R    -> S(0)
    i       S(1), S(0) -> P(sum)
    o       R,    S(1) -> S(1)

Source: the "single-dim strategies" of ``torch.distributed.tensor``, which have the same form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..core.spec import Spec
from .placement import REPLICATE, Partial, Placement, Shard


@dataclass(frozen=True)
class AxisStrategy:
    """One way to run a call over the devices of one mesh axis.

    Each device runs the operator on its slice of every ``Shard`` input. ``inputs`` has a placement for each
    tensor that is present, lists opened; ``outputs`` has one for each new output, then for each tensor that
    is written in place.

    ``name`` is the dimension that is split, and ``size`` its size. It is empty if none is split: everything
    is replicated, or inputs in which the operator is linear are partial. ``before`` and ``after`` are how
    many neighbours a slice reads (a halo). ``placed`` says that a slice has to know its place in the whole:
    then it is run by the operator's part ``<name>__placed``.
    """

    name: str
    inputs: tuple[Placement, ...]
    outputs: tuple[Placement, ...]
    size: int = 0
    before: int = 0
    after: int = 0
    placed: bool = False

    @property
    def has_halo(self) -> bool:
        """Whether a slice reads its neighbours."""
        return bool(self.before or self.after)

    def __str__(self) -> str:
        """Return for example ``i: S(1), S(0) -> P(sum)``."""
        sides = (", ".join(map(str, side)) for side in (self.inputs, self.outputs))
        halo = f", halo ({self.before}, {self.after})" if self.has_halo else ""
        placed = ", placed" if self.placed else ""
        return f"{self.name or 'none'}: {' -> '.join(sides)}{halo}{placed}"


@dataclass(frozen=True)
class ShardingRule:
    """The strategies of one call, and the specs of its flat inputs and outputs.

    The first strategy replicates everything, which is always right.
    """

    operator: str
    inputs: tuple[Spec, ...]
    outputs: tuple[Spec, ...]
    strategies: tuple[AxisStrategy, ...]

    @property
    def splits(self) -> tuple[AxisStrategy, ...]:
        """Return the strategies that split a dimension."""
        return tuple(strategy for strategy in self.strategies if strategy.name)

    def __str__(self) -> str:
        """Return one line for each strategy."""
        return "\n".join(map(str, self.strategies))


def replicated(inputs: int, outputs: int) -> AxisStrategy:
    """Return the strategy that replicates every tensor."""
    return AxisStrategy("", (REPLICATE,) * inputs, (REPLICATE,) * outputs)


def split(
    name: str,
    inputs: Sequence[int | None],
    outputs: Sequence[int | None],
    *,
    op: str = "",
    size: int,
    halo: tuple[int, int] = (0, 0),
) -> AxisStrategy:
    """Return the strategy that splits one dimension; ``inputs`` and ``outputs`` have its axis in each tensor.

    An output without the dimension is combined by ``op``: "sum", "max" or "min".
    """

    def placement(axis: int | None, other: Placement) -> Placement:
        return other if axis is None else Shard(axis)

    missing = Partial(op) if op else REPLICATE
    return AxisStrategy(
        name,
        tuple(placement(axis, REPLICATE) for axis in inputs),
        tuple(placement(axis, missing) for axis in outputs),
        size,
        *halo,
    )


def sizes_along(placements: Sequence[Placement], specs: Sequence[Spec]) -> Iterator[int]:
    """Yield the size of the split dimension of each tensor that is sharded."""
    for placement, spec in zip(placements, specs, strict=True):
        if isinstance(placement, Shard):
            yield spec.shape[placement.dim]
