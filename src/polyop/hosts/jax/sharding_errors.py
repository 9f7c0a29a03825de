"""The errors for sharded operands, by the operand and its dimension."""

from __future__ import annotations

import itertools
from typing import Any

from ...core.errors import HostError
from .layout import axis_names
from .site import Site

_HINT = (
    "call it inside jax.shard_map, which runs it once per shard, or give it the whole array "
    "(jax.device_put, jax.lax.with_sharding_constraint); dims= with parallel=, sum= or halo= declares which "
    'dimensions are split and how, and batch="elementwise" that an element of the outputs depends on the '
    "same element of the inputs only"
)
_NARROW_HINT = (
    "; a sum of 64-bit integers is split only with jax_enable_x64, as nobody would check what the devices "
    "add in 32 bits"
)


def sharding_error(site: Site, number: int, sharding: Any, dim: int | None = None) -> HostError:
    """Return the error for an operand of which the operator needs the whole.

    ``dim`` is the dimension in question; without it, the first that is split, if the sharding says which.
    """
    spec = getattr(sharding, "spec", None)
    if dim is None and spec is not None:
        dim = next((d for d, names in enumerate(spec) if axis_names(names)), None)
    where = "" if dim is None else f" along dimension {dim}"
    rule = f"{operand_name(site, number)} is sharded{where}, and nothing says how the operator is split there"
    seen = sharding if spec is None else spec
    hint = _HINT if site.wide else _HINT + _NARROW_HINT
    return HostError(site.operator.name, rule, seen, where=site.operator.origin, hint=hint)


def operand_name(site: Site, number: int) -> str:
    """Return how an error names a flat operand: ``argument x``, ``argument weights[1]``."""
    positions = site.by_argument(itertools.count())  # type: ignore[arg-type]
    rows = zip(site.operator.schema.arguments, positions, strict=True)
    for argument, position in rows:
        if position == number and position is not None:
            return f"argument {argument.name}"
        if isinstance(position, tuple) and number in position:
            return f"argument {argument.name}[{position.index(number)}]"
    raise IndexError(number)
