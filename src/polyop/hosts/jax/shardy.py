"""A call's sharding rule in the notation of Shardy, which propagates shardings by it.

    dims="b i, i o -> b o", parallel="b", sum="i"     d0 d1, d1 r3 -> d0 r5
                                                      reduction d1, replicated r3 r5

Axes with one name are split alike. An axis that has to be whole has a name of its own. Shardy enforces
neither reductions nor replication: ``partition.py`` does.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

from ...sharding.placement import Shard
from ...sharding.rule import ShardingRule


class ShardyRule(NamedTuple):
    """The arguments of ``custom_partitioning``: the rule, and its factors of two kinds."""

    sharding_rule: str
    reduction_factors: tuple[str, ...]
    need_replication_factors: tuple[str, ...]


def shardy_rule(rule: ShardingRule) -> ShardyRule:
    """Return a call's rule for Shardy.

    >>> from polyop.core.dtypes import dtype
    >>> from polyop.core.spec import Spec
    >>> from polyop.sharding.rule import replicated, split
    >>> strategies = replicated(1, 1), split("m", [0], [None], op="sum", size=4)
    >>> shapes = [(Spec((4, 6), dtype("float32")),), (Spec((6,), dtype("float32")),)]
    >>> shardy_rule(ShardingRule("ns::sum", *shapes, strategies))._asdict()
    {'sharding_rule': 'd0 r1 -> r2', 'reduction_factors': ('d0',), 'need_replication_factors': ('r1', 'r2')}
    """
    fresh = (f"r{number}" for number in itertools.count())
    rows = [[next(fresh) for _ in spec.shape] for spec in (*rule.inputs, *rule.outputs)]
    reductions: list[str] = []
    for number, strategy in enumerate(rule.splits):
        for row, placement in zip(rows, (*strategy.inputs, *strategy.outputs), strict=True):
            if isinstance(placement, Shard):
                row[placement.dim] = f"d{number}"
        if not any(isinstance(placement, Shard) for placement in strategy.outputs):
            reductions.append(f"d{number}")
    count = len(rule.inputs)
    sides: tuple[Any, ...] = (rows[:count], rows[count:])
    text = " -> ".join(", ".join(map(" ".join, side)) for side in sides)
    whole = (name for name in itertools.chain(*rows) if name.startswith("r"))
    return ShardyRule(text, tuple(reductions), tuple(whole))
