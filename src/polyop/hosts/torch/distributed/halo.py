"""The exchange of edges: each device gets the elements around its slice that the operator reads."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.distributed import _functional_collectives as collectives

from ....core.errors import FallbackWarning
from ....sharding.placement import Shard
from ....sharding.plan import Plan
from ....sharding.ranges import Range, chunks, input_range, slices, transfers
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
        if not self.moves:
            return _joined(self, place, local, local.narrow(self.dim, 0, 0).movedim(self.dim, 0))
        sent, *sizes = _to_send(self, place, local)
        received = collectives.all_to_all_single(sent, sizes[:count], sizes[count:], (mesh, self.axis))
        return _joined(self, place, local, collectives.wait_tensor(received))

    @property
    def moves(self) -> bool:
        """Whether any device sends anything; else elements that it does not need are only cut off."""
        return any(any(self.sent(place)) for place in range(len(self.have)))

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
        if count == 1 or not (strategy.has_halo or strategy.placed):
            continue
        pieces = slices(rule, strategy, count)
        for number, placement in enumerate(strategy.inputs):
            if isinstance(placement, Shard):
                size = rule.inputs[number].shape[placement.dim]
                need = [input_range(strategy, piece, size) for piece in pieces]
                have = chunks(size, count)
                rows = tuple(map(tuple, transfers(have, need)))
                exchange = Exchange(number, axis, placement.dim, tuple(have), rows)
                if exchange.moves:
                    _warn_of_gather(rule.operator, strategy.name, size, need)
                if need != have:
                    yield exchange


_given_warnings: set[tuple[str, str]] = set()


def _warn_of_gather(operator: str, name: str, size: int, need: Sequence[Range]) -> None:
    """Give a ``FallbackWarning``, once for each dimension, if every device receives the whole of it."""
    whole = all(one.size in (0, size) for one in need)
    if whole and (operator, name) not in _given_warnings:
        _given_warnings.add((operator, name))
        text = f"{operator}: the halo along {name} is wider than the slices of it: each device gets the whole"
        warnings.warn(FallbackWarning(f"{text}. Split it over fewer devices."), stacklevel=2)
