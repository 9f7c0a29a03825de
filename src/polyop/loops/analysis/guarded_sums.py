"""Sums under conditions on their loops, as in ``if 0 <= i + p - 1 < n: y[i] += x[i + p - 1] * w[p]``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from ..ir.grammar import INT, Assign, Expr, For, If, Load, Stmt, Store, Var
from ..ir.rewriter import placed
from ..ir.uses import loads_of, variables_of
from . import affine
from .ranges import SHORT, Ranges, compared
from .strides import UNIT, stride


@dataclass(frozen=True)
class GuardedSum:
    """A sum, the conditions around it as ``form >= 0``, and the loops around it, outermost first.

    ``top`` is the outermost loop or condition that holds nothing but the sum. ``inner`` are the loops from it
    inwards. Bounds that follow from other loops are taken out of these, and are conditions too.
    """

    top: For | If
    loops: tuple[For, ...]
    inner: tuple[For, ...]
    node: Store | Assign
    forms: tuple[affine.Linear, ...]
    leaves: Mapping[str, Expr]

    @property
    def target(self) -> tuple[Expr, ...]:
        """The index of the element that the sum adds to; none for a scalar."""
        return self.node.index if isinstance(self.node, Store) else ()

    @property
    def free_first(self) -> tuple[For, ...]:
        """The loops ``inner``, those that sum last: additions may be made in any order."""
        free = variables_of(*self.target)
        return tuple(sorted(self.inner, key=lambda loop: loop.var not in free))

    @property
    def ranges(self) -> Ranges:
        """The range of each loop. One linear operand stands for a min or max: it is never too narrow."""
        return {loop.var: (_simple("max", loop.lo), _simple("min", loop.hi)) for loop in self.loops}


def _simple(clamp: str, bound: Expr) -> Expr:
    ends = affine.operands(clamp, bound)
    return next((e for e in ends if affine.linear(e) is not None), bound)


@dataclass(frozen=True)
class Limit:
    """That an index is at least, or at most, a linear form."""

    axis: int
    upper: bool
    bound: affine.Linear
    leaves: Mapping[str, Expr]


def limit_of_axis(form: affine.Linear, load: Load, variables: set[str]) -> Limit | None:
    """Return what ``form >= 0`` says of an index of an operand; None if it is about something else."""
    for axis, index in enumerate(map(affine.linear_with_terms, load.index)):
        limit = _limit(form, index[0], variables) if index is not None else None
        if index is not None and limit is not None:
            return Limit(axis, *limit, index[1])
    return None


def _limit(
    form: affine.Linear, index: affine.Linear, variables: set[str]
) -> tuple[bool, affine.Linear] | None:
    """Return (whether it is an upper bound, the bound) of an index where ``form >= 0``, or None."""
    for upper, sign in ((False, -1), (True, 1)):
        rest = {n: form.get(n, 0) + sign * index.get(n, 0) for n in (*form, *index)}
        if not any(rest[n] for n in variables if n in rest):
            return upper, {n: c if upper else -c for n, c in rest.items()}
    return None


def guarded_sums(nest: For, fixed: Collection[str]) -> Iterator[GuardedSum]:
    """Yield the sums that are alone under conditions, or in loops that follow from loops further out.

    ``fixed`` are the variables that are the same in all iterations.
    """
    inside: set[int] = set()
    for top, place in placed((nest,)):
        if id(top) in inside or not isinstance(top, (If, For)):
            continue
        loops, inner, tests = place.loops, list[For](), list[Expr]()
        node: Stmt = top
        while isinstance(node, (If, For)):
            if isinstance(node, If):
                tests += affine.operands("and", node.condition)
            else:
                variables = {loop.var for loop in (*loops, *inner)}
                whole, ends = _unclamped(node, variables, fixed)
                tests += ends
                inner.append(whole)
            if len(node.body) != 1 or (isinstance(node, If) and node.orelse):
                break
            node = node.body[0]
        if isinstance(node, (If, For)) or node.op != "+" or not tests:
            continue
        forms, leaves = list[affine.Linear](), dict[str, Expr]()
        for test in tests:
            form = affine.nonnegative(test, fixed)
            if form is None:
                break
            forms.append(form[0])
            leaves |= form[1]
        else:
            inside |= {id(below) for below, _ in placed((top,))}
            yield GuardedSum(top, (*loops, *inner), tuple(inner), node, tuple(forms), leaves)


def _unclamped(loop: For, around: set[str], fixed: Collection[str]) -> tuple[For, list[Expr]]:
    """Return a loop without the bounds that follow from loops around it, and these as conditions."""
    lows, highs = affine.operands("max", loop.lo), affine.operands("min", loop.hi)
    tests: list[Expr] = []

    def follows(bound: Expr) -> bool:
        return bool(variables_of(bound) & around) and affine.linear_with_terms(bound, fixed) is not None

    if not all(map(follows, lows)) and not all(map(follows, highs)):
        here = Var(loop.var, INT)
        tests += [*(here >= e for e in lows if follows(e)), *(here < e for e in highs if follows(e))]
        lo = affine.extreme("max", (e for e in lows if not follows(e)))
        hi = affine.extreme("min", (e for e in highs if not follows(e)))
        loop = replace(loop, lo=lo, hi=hi)
    return loop, tests


@dataclass(frozen=True)
class Bound:
    """What a loop of a sum begins and ends with, in place of conditions."""

    var: str
    lows: tuple[Expr, ...]
    highs: tuple[Expr, ...]


def lanes_are_summed(found: GuardedSum, load: Load) -> bool:
    """Whether lanes run along a loop that sums: others over the last axis of an operand are short."""
    used = variables_of(load.index[-1]) if load.index else frozenset()
    free = variables_of(*found.target)
    along = [loop for loop in found.loops if loop.var in used and stride(load, loop.var) == UNIT]
    sums = [loop for loop in along if loop.var not in free]
    others = [loop for loop in along if loop.var in free]
    return bool(others) and any(all(compared(x, loop) == SHORT for x in others) for loop in sums)


def bounds_of_sums(found: GuardedSum, load: Load, *, on_lanes: bool) -> dict[int, list[Bound]]:
    """Return the conditions that bounds of summing loops replace, by axes of an operand.

    ``on_lanes``: lanes run along the last axis. They have one range for a sum, so it needs the zeros.
    Around the lanes, the bounds of the sums may differ.
    """
    bounds: dict[int, list[Bound]] = {}
    variables = {loop.var for loop in found.loops}
    order = [*found.loops[: len(found.loops) - len(found.inner)], *found.free_first]
    sums = {loop.var for loop in found.inner} - variables_of(*found.target)
    own_order = any(loop.hint or variables_of(loop.lo, loop.hi) & sums for loop in found.inner)
    if own_order or loads_of(*found.target):
        return bounds  # their order stays
    needs_zeros = {len(load.index) - 1} if on_lanes else set[int]()
    for form in found.forms:
        limit = limit_of_axis(form, load, variables)
        if limit is None:
            continue
        inside = [loop.var for loop in order if form.get(loop.var)]
        if not inside or inside[-1] not in sums or abs(form[inside[-1]]) != 1:
            needs_zeros.add(limit.axis)
            continue
        step = form[inside[-1]]
        rest = {name: -step * c for name, c in form.items() if name != inside[-1]}
        bound = affine.simplified(affine.from_linear(rest, {**found.leaves, **limit.leaves}))
        lows, highs = ((bound,), ()) if step == 1 else ((), (affine.simplified(bound + 1),))
        bounds.setdefault(limit.axis, []).append(Bound(inside[-1], lows, highs))
    return {axis: of_axis for axis, of_axis in bounds.items() if axis not in needs_zeros}
