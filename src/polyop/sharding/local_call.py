"""``local_call``: which operator a device calls on its slices, and with which arguments.

norm(x)          kernel as it is              norm, (x[2:5],)
mean(x)          a slice knows its place      mean__placed, (x[2:5], "i", 2, 5, 2, 8)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..call.bound import BoundOperator
from .ranges import Slice
from .rule import AxisStrategy


def local_call(
    bound: BoundOperator,
    strategies: Sequence[AxisStrategy],
    pieces: Sequence[Slice | None],
    arguments: Sequence[Any],
) -> tuple[BoundOperator, tuple[Any, ...]]:
    """Return the operator that a device calls on its slices, and its arguments.

    ``strategies`` has one for each mesh axis, and ``pieces`` the device's slice along it; None will do where
    the strategy is not placed. ``arguments`` are those of the schema, with the device's tensors, which are
    cut by :func:`.ranges.input_range`. The outputs are cut by the caller, at :func:`.ranges.output_offset`.
    """
    for strategy, piece in zip(strategies, pieces, strict=True):
        if strategy.placed and piece is not None:
            rule = bound.operator.placed
            place = (piece.own.begin, piece.own.end, piece.input.begin, strategy.size)
            return rule.main_part(), rule.arguments(strategy.name, place, arguments)
    return bound, (*arguments,)
