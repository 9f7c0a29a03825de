"""Operators on sharded arrays: one call per shard where that is right, else an error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .emit import emit
from .site import Site


def lower(site: Site, flat: Sequence[Any]) -> tuple[Any, ...]:
    """Return the outputs of a call in terms of XLA's operations, for any number of devices."""
    return emit(site, *flat)
