"""Find by how much the iterations of a nest shift what they store: ``y[2 * i + p]`` by 2 along ``i``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..ir.grammar import Store
from ..ir.uses import variables_of
from . import affine


@dataclass(frozen=True)
class Shift:
    """An axis with the index ``step * owner + inner + rest``: the loop ``owner`` becomes one over elements.

    Each addition has its own ``inner``, the coefficients of the other loops of the nest, and ``rest``, those
    of sizes and attributes.
    """

    owner: str
    step: int
    inner: tuple[affine.Linear, ...]
    rest: tuple[affine.Linear, ...]


def are_shifted(stores: Sequence[Store], loops: Sequence[str]) -> bool:
    """Whether stores go to elements that other iterations reach too: shifted apart, or along a sum."""
    for axis in range(len(stores[0].index)):
        found = [affine.linear_with_terms(affine.unclamped(s.index[axis])) for s in stores]
        forms = [None if one is None else one[0] for one in found]
        if any(form is not None and len(set(form) & set(loops)) > 1 for form in forms):
            return True
        if any(form != forms[0] for form in forms):
            return True
    return False


def shifts(stores: Sequence[Store], variables: Sequence[str]) -> list[Shift | None] | None:
    """Return what becomes of each axis; None if the nest has another form."""
    axes: list[Shift | None] = []
    for indices in zip(*(s.index for s in stores), strict=True):
        found = [affine.linear_with_terms(i) for i in indices]
        forms = [one[0] for one in found if one is not None]
        moving = {v for i in indices for v in variables_of(i)} & {*variables}
        if len({*indices}) == 1 and (len(moving) < 2 or not forms):
            axes.append(None)
            continue
        shift = _shift(forms, [v for v in variables if v in moving]) if len(forms) == len(indices) else None
        if shift is None:
            return None
        axes.append(shift)
    kept = [variables_of(i) for i, axis in zip(stores[0].index, axes, strict=True) if axis is None]
    uses = [{*kept_} & {*variables} for kept_ in kept]
    for axis in (a for a in axes if a is not None):
        uses += ({axis.owner}, {v for inner in axis.inner for v in inner})
    owners = [a.owner for a in axes if a is not None]
    divided = {v for a in axes if a is not None and a.step > 1 for v in a.inner[0]}
    alone = all(sum(v in use for use in uses) == 1 for v in (*owners, *divided))
    return axes if alone and (len(stores) == 1 or all(a is None or a.step == 1 for a in axes)) else None


def _shift(forms: Sequence[affine.Linear], variables: Sequence[str]) -> Shift | None:
    """Return an axis as a shift along one of some loops; None if none has one factor in all indices."""
    for owner in variables:
        steps = {form.get(owner, 0) for form in forms}
        (step,) = steps if len(steps) == 1 else (0,)
        inner = tuple({v: form[v] for v in variables if v != owner and v in form} for form in forms)
        if step == 1 or (step > 1 and all(len(one) == 1 for one in inner)):
            rest = tuple({n: c for n, c in form.items() if n not in variables} for form in forms)
            return Shift(owner, step, inner, rest)
    return None
