"""Reorder the loops of a nest: compute their bounds, where these are affine in one another.

    for i in range(n):                     for k in range(n):
        for j in range(i, n):         ->       for j in range(k, n):
            for k in range(i, j + 1):              for i in range(k + 1):

The bounds are inequalities. A loop keeps those whose other variables belong to loops around it; for the loops
around it, each of its lower bounds is at most each of its upper bounds (Fourier-Motzkin elimination). Where a
variable has the factor 1 or -1 that loses no iteration and adds none.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..ir.grammar import INT, Const, Expr, For, Var
from . import affine
from .affine import Linear

MAX_INEQUALITIES = 40
"""The most inequalities of a nest: elimination can square their number."""


class Nest(NamedTuple):
    """Loops in their new order, and conditions on what is outside. Where one is false, no iteration runs.

    Where all hold, each loop but the first has an iteration in each iteration of those around it.
    """

    loops: list[For]
    tests: list[Expr]


def reordered(order: Sequence[For]) -> Nest | None:
    """Return the loops of a perfect nest with bounds for an order, outermost first, or None."""
    leaves: dict[str, Expr] = {}
    facts = [fact for loop in order for fact in _facts(loop, leaves) or [None]]
    if None in facts:
        return None
    known = _distinct(fact for fact in facts if fact is not None)
    result, variables = list[For](), {loop.var for loop in order}
    for loop in reversed(order):
        own = [fact for fact in known if fact.get(loop.var, 0)]
        low, high = ([f for f in own if f[loop.var] == sign] for sign in (1, -1))
        if len(low) + len(high) < len(own) or not low or not high or len(known) > MAX_INEQUALITIES:
            return None
        rest = [fact for fact in known if fact not in own]
        pairs = [_sum(one, other) for one, other in itertools.product(low, high)]
        if any(not pair.keys() - {""} and pair[""] < 0 for pair in pairs if pair):
            return None  # it has no iteration at all
        known = _distinct([*rest, *(pair for pair in pairs if pair.keys() - {""})])
        lows = [_scaled(fact, loop.var, -1, 0) for fact in low]
        highs = [_scaled(fact, loop.var, 1, 1) for fact in high]
        # what loops around it imply: a fact about sizes alone may come from the very bounds that are compared
        around = [fact for fact in known if fact.keys() & variables]
        lo = _bound("max", lows, around, leaves)
        result.append(replace(loop, lo=lo, hi=_bound("min", highs, around, leaves)))
    zero = Const(0, INT)
    return Nest(result[::-1], [affine.from_linear(fact, leaves) >= zero for fact in known])


def _facts(loop: For, leaves: dict[str, Expr]) -> list[Linear | None]:
    """Return the linear forms that are not negative in a loop; None for a bound that is not linear."""
    here: Linear = {loop.var: 1}
    leaves[loop.var] = Var(loop.var, INT)
    rows = [(e, 1, 0) for e in affine.operands("max", loop.lo)]
    rows += [(e, -1, -1) for e in affine.operands("min", loop.hi)]
    result: list[Linear | None] = []
    for bound, sign, constant in rows:
        found = affine.linear_with_terms(bound)
        if found is None:
            return [None]
        leaves |= found[1]
        difference = _sum(here, {name: -factor for name, factor in found[0].items()})
        result.append(_sum({name: sign * factor for name, factor in difference.items()}, {"": constant}))
    return result


def _sum(a: Linear, b: Linear) -> Linear:
    form = {name: a.get(name, 0) + b.get(name, 0) for name in (*a, *b)}
    return {name: factor for name, factor in form.items() if factor}


def _scaled(fact: Linear, var: str, sign: int, constant: int) -> Linear:
    """Return the bound of a variable that an inequality gives."""
    return _sum({name: sign * factor for name, factor in fact.items() if name != var}, {"": constant})


def _distinct(facts: Iterable[Linear]) -> list[Linear]:
    """Return inequalities without those that follow from one that differs by a constant."""
    best: dict[frozenset[tuple[str, int]], Linear] = {}
    for fact in facts:
        same = frozenset((name, factor) for name, factor in fact.items() if name)
        if same not in best or fact.get("", 0) < best[same].get("", 0):
            best[same] = fact
    return list(best.values())


def _bound(name: str, forms: Sequence[Linear], known: Sequence[Linear], leaves: dict[str, Expr]) -> Expr:
    """Return the greatest or least of forms, without those that are not, as inequalities say."""
    kept = list(forms)
    sums = [*known, *itertools.starmap(_sum, itertools.combinations(known, 2))] if forms[1:] else []
    for form in forms:
        others = [other for other in kept if other is not form]
        if any(_is_less(*((form, other) if name == "max" else (other, form)), sums) for other in others):
            kept = others
    return affine.extreme(name, (affine.from_linear(form, leaves) for form in kept))


def _is_less(one: Linear, other: Linear, known: Sequence[Linear]) -> bool:
    """Whether one form is at most the other."""
    difference = _sum(other, {name: -factor for name, factor in one.items()})
    constant = difference.pop("", 0)
    if not difference:
        return constant >= 0
    return any(
        {name: factor for name, factor in fact.items() if name} == difference and fact.get("", 0) <= constant
        for fact in known
    )
