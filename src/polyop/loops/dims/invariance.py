"""Prove that a kernel does in a slice what it does there in the whole.

For every slice, each statement runs the same instances, with the same accesses and the same conditions, moved
by the start of the slice. Only instances that an output of the slice needs are compared.

That is enough: the instances run in the same order, so by induction over it each needed value is equal. Reads
stay inside the slice because a kernel is valid for the size that it is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..analysis.polyhedra import Access
from .dimension import NotSliced
from .dimension_sets import DimensionSets, isl_text
from .halo import ZERO, Radius
from .index_values import Condition
from .sites import Site, shown


class Invariance:
    """The proof for one dimension and one halo."""

    def __init__(
        self,
        sets: DimensionSets,
        halo: Radius,
        radii: Mapping[str, Radius],
        conditions: Mapping[Site, Sequence[Condition]],
    ) -> None:
        self.sets, self.radii, self.conditions = sets, radii, conditions
        self.slices = sets.slices(isl_text(halo.before), isl_text(halo.after))

    def check(self, site: Site) -> None:
        """Raise :class:`NotSliced` if a statement may do something else in a slice."""
        if site.coordinate is None:
            self._check_unrelated(site)
            return
        in_whole = self._whole(site, ())
        if not in_whole.is_equal(self._sliced(site, ())):
            raise NotSliced(site.line, "which iterations run it depends on where the slice is")
        if self._moves_differently(in_whole, site, site.coordinate):
            raise NotSliced(site.line, f"{site.target} is written at another place in a slice")
        for access, coordinate in site.accesses:
            self._check_access(site, access, coordinate)
        for condition in self.conditions[site]:
            rows = (*condition.guards, condition.text)
            if not self._whole(site, rows).is_equal(self._sliced(site, rows)):
                raise NotSliced(site.line, "a condition in it depends on where the slice is")

    def _whole(self, site: Site, more: Sequence[str]) -> Any:
        """Return the needed instances in the whole kernel."""
        assert site.coordinate is not None
        return self.sets.whole(site, [*self.slices, self._region(site, site.coordinate), *more])

    def _sliced(self, site: Site, more: Sequence[str]) -> Any:
        """Return the needed instances in a slice: of a sum all, which in the whole are those of [a_, b_)."""
        rows = list(self.slices)
        if site.writes_along:
            assert site.coordinate is not None
            rows.append(self._region(site, f"({self.sets.in_slice(site, site.coordinate)} + s_)"))
        return self.sets.sliced(site, more).intersect(self.sets.instances(site, rows))

    def _region(self, site: Site, coordinate: str) -> str:
        """Return the constraint that the outputs of a slice need what is computed at a coordinate."""
        radius = self.radii.get(site.target, ZERO)  # what no output needs must still stay inside its tensors
        low, high = isl_text(radius.before), isl_text(radius.after)
        return f"{coordinate} >= a_ - {low} and {coordinate} < b_ + {high}"

    def _moves_differently(self, instances: Any, site: Site, coordinate: str) -> bool:
        """Whether an instance has another coordinate in a slice, apart from where the slice starts."""
        moved = f"{self.sets.in_slice(site, coordinate)} != {coordinate} - s_"
        return not instances.intersect(self.sets.instances(site, [*self.slices, moved])).is_empty()

    def _check_access(self, site: Site, access: Access, coordinate: str) -> None:
        here = self._whole(site, access.guards)
        if self._moves_differently(here, site, coordinate):
            raise NotSliced(site.line, f"{shown(access)} is another element in a slice")
        if access.guards and not here.is_equal(self._sliced(site, access.guards)):
            raise NotSliced(site.line, f"whether {shown(access)} is read depends on where the slice is")

    def _check_unrelated(self, site: Site) -> None:
        """Check that a statement that has nothing to do with the dimension runs the same in every slice."""
        rows = [tuple(site.leaf.constraints), *((*c.guards, c.text) for c in self.conditions[site])]
        for constraints in rows:
            if not any(self.sets.size in text for text in constraints):
                continue
            here = self.sets.instances(site, [*self.slices, *constraints])
            there = self.sets.sliced(site, constraints).intersect(self.sets.instances(site, self.slices))
            if not here.is_equal(there):
                raise NotSliced(site.line, "whether it runs depends on the size of the slice")
