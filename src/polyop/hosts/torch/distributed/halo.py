"""The exchange of edges: each device gets the elements around its slice that the operator reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.distributed import _functional_collectives as collectives

from ....sharding.placement import Shard
from ....sharding.plan import Plan
from ....sharding.ranges import Range, chunks, slices, transfers
from ....sharding.rule import ShardingRule
from .local import per_rank


@dataclass(frozen=True, eq=False)
class Exchange:
    """What the devices along one axis of the mesh send each other of one input.

    ``rows`` has for each device what it sends to each device, itself included, as positions in the whole.
    ``have`` has the elements of each device before.
    """

    input: int
    axis: int
    dim: int
    have: tuple[Range, ...]
    rows: tuple[tuple[Range, ...], ...]

    def __call__(self, local: torch.Tensor, mesh: Any, coordinate: Sequence[Any]) -> torch.Tensor:
        """Return the local tensor with its halo; it need not be dense."""
        place = coordinate[self.axis]
        count = len(self.have)
        sent, *sizes = _to_send(self, place, local)
        received = collectives.all_to_all_single(sent, sizes[:count], sizes[count:], (mesh, self.axis))
        return _joined(self, place, local, collectives.wait_tensor(received))

    def received(self, place: int) -> list[int]:
        """Return how many elements a device receives from each device."""
        return [0 if sender == place else row[place].size for sender, row in enumerate(self.rows)]

    def sent(self, place: int) -> list[int]:
        """Return how many elements a device sends to each device."""
        return [0 if other == place else sent.size for other, sent in enumerate(self.rows[place])]


@per_rank
def _to_send(exchange: Exchange, place: int, local: torch.Tensor) -> tuple[Any, ...]:
    """Return what a device sends, then how much it receives from each device and sends to each."""
    begin = exchange.have[place].begin
    pieces = [
        local.narrow(exchange.dim, sent.begin - begin if size else 0, size)
        for sent, size in zip(exchange.rows[place], exchange.sent(place), strict=True)
    ]
    sent = torch.cat([piece.movedim(exchange.dim, 0) for piece in pieces]).contiguous()
    return (sent, *exchange.received(place), *exchange.sent(place))


@per_rank
def _joined(exchange: Exchange, place: int, local: torch.Tensor, received: torch.Tensor) -> torch.Tensor:
    """Return what a device received, in the order of positions, around what it keeps."""
    kept = exchange.rows[place][place]
    own = local.narrow(exchange.dim, kept.begin - exchange.have[place].begin if kept.size else 0, kept.size)
    before = sum(exchange.received(place)[:place])
    edges = received.movedim(0, exchange.dim)
    left = edges.narrow(exchange.dim, 0, before)
    right = edges.narrow(exchange.dim, before, edges.shape[exchange.dim] - before)
    return torch.cat([left, own, right], exchange.dim)


def exchanges(rule: ShardingRule, plan: Plan, mesh: Sequence[int]) -> Iterator[Exchange]:
    """Yield the exchanges of a plan, axis after axis: a later one sends the corners of an earlier one."""
    for axis, (strategy, count) in enumerate(zip(plan.strategies, mesh, strict=True)):
        if not strategy.has_halo or count == 1:
            continue
        need = [piece.input for piece in slices(rule, strategy, count)]
        have = chunks(strategy.size, count)
        if need == have:
            continue
        rows = tuple(map(tuple, transfers(have, need)))
        for number, placement in enumerate(strategy.inputs):
            if isinstance(placement, Shard):
                yield Exchange(number, axis, placement.dim, tuple(have), rows)
