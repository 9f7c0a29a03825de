"""``<name>__placed``: the operator that computes one slice, given the slice's offset in the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...kernels.loop.forms import PLACED
from .base import LoopRule


class PlacedRule(LoopRule):
    """Makes the operator that computes a slice along one dimension, told where the slice is."""

    part_kinds = (PLACED.suffix,)
    form = PLACED

    def arguments(self, dimension: str, place: Sequence[Any], arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Return the part's arguments for those of a call on the slice's tensors.

        ``place`` is (begin, end, start, size), all counted in the whole: the slice, where its tensors start,
        and the size of the whole.
        """
        tensors, attributes = self.schema.tensors_and_attributes(arguments)
        return (*tensors, dimension, *place, *attributes.values())
