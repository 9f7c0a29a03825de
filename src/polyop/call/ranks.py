"""Find how many dimensions the tensors of an operator have, by ``dims=`` or by its loops, before a call."""

from __future__ import annotations

from collections.abc import Mapping

from ..kernels.base import LoopKernelBase
from .operator import Operator

Ranks = Mapping[str, int | None]
"""By tensor argument; None where nothing tells it."""


def ranks_of(operator: Operator) -> dict[str, int | None]:
    """Return the number of dimensions of each tensor argument, as far as it is known."""
    ranks: dict[str, int | None] = dict.fromkeys(one.name for one in operator.schema.tensor_arguments)
    kernel = next((k for k in operator.kernels if isinstance(k, LoopKernelBase)), None)
    ranks |= dict(zip(ranks, () if kernel is None else kernel.ranks, strict=False))
    if operator.dims is not None:
        entries = zip(ranks, operator.dims.inputs, strict=True)
        ranks |= {name: rank for name, entry in entries if (rank := entry.fixed_rank()) is not None}
    return ranks


def described(ranks: Ranks) -> str:
    """Return in words how many dimensions tensors have; "" where nothing is known.

    >>> described({"x": 2, "at": 1, "w": None})
    'x has 2 dimensions, at 1'
    """
    known = {name: rank for name, rank in ranks.items() if rank is not None}
    if not known:
        return ""
    (name, rank), *more = known.items()
    rest = "".join(f", {one} {number}" for one, number in more)
    return f"{name} has {rank} dimension{'s' * (rank != 1)}{rest}"


def example(rank: int | None) -> str:
    """Return an input for messages: ``float32[2, 3]``, or with as many dimensions as are known.

    >>> example(None), example(1)
    ('float32[2, 3]', 'float32[2]')
    """
    return f"float32{list(range(2, 2 + (2 if rank is None else rank)))}"
