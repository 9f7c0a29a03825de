"""The loop kernel that computes one slice, and gets the slice's offset in the whole as attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from ...core.derived_names import derived_name
from ...core.errors import ArgumentValueError
from ...loops.ir.grammar import Kernel
from .derived import DerivedKernel, own_attribute

if TYPE_CHECKING:
    from ...loops.dims.placed import Place


@dataclass(eq=False)
class PlacedKernel(DerivedKernel):
    """The loop kernel ``base`` for a slice of one dimension; see :mod:`polyop.loops.dims.placed`.

    Its tensors are those of ``base``, cut as a slice with its halo. The attribute ``key_attribute`` is the
    name of the dimension, and the attributes ``place`` say where the slice is.
    """

    SUFFIX: ClassVar[str] = "placed"
    WHAT: ClassVar[str] = "slice"

    @property
    def key_attribute(self) -> str:
        """The name of an attribute whose value is the name of a dimension, as ``polyop explain`` shows it."""
        return own_attribute("polyop_dimension", self.base)

    @property
    def place(self) -> Place:
        """The names of the attributes that say where a slice is."""
        from ...loops.dims.placed import Place

        return Place(*(f"{self.key_attribute}_{word}" for word in Place._fields))

    def typed(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Kernel:
        """Return the kernel for these specs. Raises ``ArgumentValueError`` for a dimension that is whole."""
        from ...loops.dims.placed import placed_kernel

        kernel, rows = self.base.slicings_of_call(inputs, attributes)
        cut_along = attributes[self.key_attribute]
        row = next((row for row in rows if row.dimension.name == cut_along and row.kind != "whole"), None)
        if row is None:
            cut = ", ".join(row.dimension.name for row in rows if row.kind != "whole") or "none"
            rule = f"can be cut into slices along {cut}"
            raise ArgumentValueError(str(self), rule, cut_along, where=self.base.where)

        def make() -> Kernel:
            known = self.base.known_sizes(inputs, attributes)
            placed, _ = placed_kernel(kernel, row, known, self.place)
            name = derived_name(f"{kernel.name}__{self.SUFFIX}", self.SUFFIX, kernel.name)
            return replace(placed, name=name, derived=True)

        return self.derived((id(kernel), cut_along), make)

    def _numbers(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        return super()._numbers(attributes) | {name: attributes[name] for name in self.place}
