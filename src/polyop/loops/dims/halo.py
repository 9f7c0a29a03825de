"""Find how many neighbours a slice reads before and after it.

    t[i] = x[i - 1] + x[i + 1]      t: 1 on each side of x
    y[i] = t[i] + t[i + 1]          y: t with 0 before and 1 after, so x with 1 before and 2 after

A *radius* is how far beyond the slice a buffer has to be right. It is 0 for outputs, and grows with the
offsets at which statements read. A value that needs all values before it makes it grow without end. A width
is negative where less than the slice is read on that side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..analysis.affine import Linear
from ..analysis.polyhedra import Access
from .dimension import NotSliced
from .dimension_sets import DimensionSets
from .sites import Site, shown


class Radius(NamedTuple):
    """How far before and after a slice, as linear forms of attributes and other sizes."""

    before: Linear
    after: Linear
    assumed: frozenset[tuple[tuple[str, int], ...]] = frozenset()
    """The linear forms that a comparison of widths took for at least 0, in pairs of a name and a factor."""

    @property
    def is_zero(self) -> bool:
        """Whether it is the slice alone."""
        return not any(self.before.values()) and not any(self.after.values())


ZERO = Radius({}, {})


def find_radii(sets: DimensionSets, sites: Sequence[Site], outputs: Sequence[str]) -> dict[str, Radius]:
    """Return the radius of each buffer that ``outputs`` need; raises :class:`NotSliced`."""
    radii: dict[str, Radius] = dict.fromkeys(outputs, ZERO)
    offsets = {site: _offsets(sets, site) for site in sites if site.coordinate is not None}
    rounds = len({a.target for site in offsets for a, _ in site.accesses}) + 1
    for _ in range(rounds):
        if not _grow(radii, offsets):
            return radii
    rows = ((site, access, o) for site, accesses in offsets.items() for access, o in accesses if o != ZERO)
    for site, access, offset in rows:  # one of these makes it grow without end
        if _depends_on(access.target, site.target, offsets):
            side = "before" if any(c > 0 for c in offset.before.values()) else "after"
            raise NotSliced(site.line, f"{shown(access)} needs all elements {side} it")
    raise AssertionError("radii grow, and no statement needs itself")


def _grow(radii: dict[str, Radius], offsets: Mapping[Site, Sequence[tuple[Access, Radius]]]) -> bool:
    """Widen the radii by what each statement reads; return whether any changed."""
    before = dict(radii)
    for site, rows in offsets.items():
        own = radii.get(site.target, ZERO) if site.writes_along else ZERO
        for access, offset in rows:
            wider, known = _sum(own, offset), radii.get(access.target)
            radii[access.target] = wider if known is None else _join(known, wider, site)
    return radii != before


def _depends_on(name: str, other: str, offsets: Mapping[Site, Sequence[tuple[Access, Radius]]]) -> bool:
    """Whether what is stored in a buffer is computed from another, by any number of statements."""
    reached, size = {name}, 0
    while len(reached) != size:
        size = len(reached)
        reached |= {a.target for site, rows in offsets.items() if site.target in reached for a, _ in rows}
    return other in reached


def widest(radii: Mapping[str, Radius], names: Sequence[str]) -> Radius:
    """Return a radius that holds those of the buffers ``names``."""
    result = ZERO
    for name in names:
        if name in radii:
            result = _join(result, radii[name], None)
    return result


def _offsets(sets: DimensionSets, site: Site) -> list[tuple[Access, Radius]]:
    """Return for each read along the dimension how far it is from the statement's own coordinate."""
    rows = []
    for access, coordinate in site.accesses:
        if access.write or coordinate == site.coordinate:
            if not access.write:
                rows.append((access, ZERO))
            continue
        low, high = sets.offset_range(site, access, coordinate)
        if low is None or high is None:
            raise NotSliced(site.line, f"{shown(access)} may be any distance away")
        rows.append((access, Radius({name: -c for name, c in low.items()}, high)))
    return rows


def _sum(one: Radius, other: Radius) -> Radius:
    before, after = added(one.before, other.before), added(one.after, other.after)
    return Radius(before, after, one.assumed | other.assumed)


def added(a: Linear, b: Linear, factor: int = 1) -> Linear:
    """Return ``a + factor * b``."""
    form = {name: a.get(name, 0) + factor * b.get(name, 0) for name in (*a, *b)}
    return {name: c for name, c in form.items() if c}


def _join(one: Radius, other: Radius, site: Site | None) -> Radius:
    joined = join(one, other)
    if joined is None:
        line = 0 if site is None else site.line
        raise NotSliced(line, "which of two widths is the larger depends on sizes")
    return joined


def join(one: Radius, other: Radius) -> Radius | None:
    """Return a radius that holds both; None where which is the larger depends on sizes."""
    before, after = _larger(one.before, other.before), _larger(one.after, other.after)
    if before is None or after is None:
        return None
    assumed = one.assumed | other.assumed
    for larger, widths in ((before, (one.before, other.before)), (after, (one.after, other.after))):
        more = [added(larger, width, -1) for width in widths]
        assumed |= {tuple(sorted(form.items())) for form in more if any(form)}
    return Radius(before, after, assumed)


def _larger(a: Linear, b: Linear) -> Linear | None:
    """Return the larger of two widths for all sizes and attributes of at least 1, or None."""
    for one, other in ((a, b), (b, a)):
        more = added(one, other, -1)
        if sum(more.values()) >= 0 and all(c >= 0 for name, c in more.items() if name):
            return one
    return None
