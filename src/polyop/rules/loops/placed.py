"""``<name>__placed``: the operator that computes one slice, given the slice's offset in the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...call.operator import Operator
from ...core.schema import Argument, Type
from ...kernels.loop.placed import PlacedKernel
from .base import LoopRule
from .parts import Complete


class PlacedRule(LoopRule):
    """Makes the operator that computes a slice along one dimension, told where the slice is.

    It takes the operator's tensors, cut as a slice with its halo, then the name of the dimension, the slice's
    begin and end, where its tensors start, and the size of the whole, all counted in the whole; then the
    operator's attributes. It has no rules: gradients and batches are those of the whole, and are sliced.
    """

    part_kinds = ("placed",)
    SUFFIX = "placed"
    KERNEL = PlacedKernel

    def __init__(self, operator: Operator, complete: Complete) -> None:
        """Derive nothing yet; ``complete`` is not used."""
        del complete
        super().__init__(operator, lambda part: part)

    def attributes(self, kernel: Any) -> list[Argument]:
        """Return the name of the dimension, and the slice's place."""
        return [*super().attributes(kernel), *(Argument(name, Type("SymInt")) for name in kernel.place)]

    def arguments(self, dimension: str, place: Sequence[Any], arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Return the part's arguments for those of a call on the slice's tensors.

        ``place`` is (begin, end, start, size).
        """
        tensors, attributes = self.schema.tensors_and_attributes(arguments)
        return (*tensors, dimension, *place, *attributes.values())
