"""Bound the variables of loops by expressions of sizes alone."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..ir.grammar import INT, Const, Expr, For, Load, Op, OpenEnd, Size, Var, walk
from ..ir.operate import operate
from . import affine

Ranges = Mapping[str, tuple[Expr, Expr]]
"""The bounds of loops by variable."""


def extreme(bound: Expr, ranges: Ranges, *, up: bool) -> Expr | None:
    """Return a value that a bound does not exceed (fall below) in any iteration of the loops around it.

    The least such value, or close to it; None where it depends on data, or on products of loops.
    """
    if isinstance(bound, OpenEnd):
        return None
    if isinstance(bound, Op) and bound.name in ("max", "min"):
        parts = [extreme(a, ranges, up=up) for a in bound.args]
        known = [p for p in parts if p is not None]
        enough = len(known) == len(parts) or (bool(known) and (bound.name == "min") == up)
        return functools.reduce(lambda a, b: operate(bound.name, a, b), known) if enough else None
    form = affine.linear(bound)
    if form is None and not any(isinstance(e, Load) or _runs(e, ranges) for e in walk(bound)):
        return bound
    if form is None:
        return _of_parts(bound, ranges, up=up)
    total: Expr = Const(form.get("", 0), INT)
    for leaf in dict.fromkeys(e for e in walk(bound) if isinstance(e, (Var, Size))):
        factor = form.get(affine.name_of(leaf), 0)
        value: Expr | None = leaf
        if _runs(leaf, ranges) and isinstance(leaf, Var):
            high = (factor > 0) == up
            value = extreme(ranges[leaf.name][high], ranges, up=high)
            value = value - 1 if high and value is not None else value
        if value is None:
            return None
        total = total + Const(factor, INT) * value
    return total


def span(loop: For, around: Iterable[For]) -> tuple[Expr, Expr] | None:
    """Return the bounds that a loop keeps to in all iterations of the loops around it; None if unknown."""
    ranges = {other.var: (other.lo, other.hi) for other in around}
    low, high = extreme(loop.lo, ranges, up=False), extreme(loop.hi, ranges, up=True)
    return None if low is None or high is None else (low, high)


def _of_parts(bound: Expr, ranges: Ranges, *, up: bool) -> Expr | None:
    """Return the extreme of an expression that is not linear, from those of its operands."""

    def part(expr: Expr, *, up: bool) -> Expr | None:
        return extreme(expr, ranges, up=up)

    match bound:
        case Op(name="cast" | "neg", args=(a,)):
            inner = part(a, up=up != (bound.name == "neg"))
            return None if inner is None else replace(bound, args=(inner,))
        case Op(name="+" | "-", args=(a, b)):
            first, second = part(a, up=up), part(b, up=up != (bound.name == "-"))
            return None if first is None or second is None else operate(bound.name, first, second)
        case Op(name="//" | "ceil_div", args=(a, Const(value=int(c)) as divisor)) if c > 0:
            inner = part(a, up=up)
            return None if inner is None else operate(bound.name, inner, divisor)
        case Op(name="%", args=(_, Const(value=int(c)))) if c > 0:
            return Const(c - 1 if up else 0, INT)
        case Op(name="*", args=args):
            for a, size in (args, args[::-1]):
                inner = part(a, up=up) if _is_size(size) else None
                if inner is not None:
                    return operate("*", inner, size)
    return None


def _is_size(expr: Expr) -> bool:
    """Whether an expression is a size, or a part of one: not negative, and the same in all iterations."""
    match expr:
        case Op(name="//" | "ceil_div", args=(a, Const(value=int(c)))) if c > 0:
            return _is_size(a)
    return isinstance(expr, Size)


def length(low: Expr, high: Expr) -> Expr:
    """Return how many elements memory for the iterations from ``low`` below ``high`` needs, or a few more.

    It is linear in sizes where it can be, so that indices can be proven to be inside; never negative.
    """
    size = high - low
    form = affine.linear(size)
    leaves = dict.fromkeys(e for e in walk(size) if isinstance(e, (Var, Size)))
    factors = [(form or {}).get(affine.name_of(leaf), 0) for leaf in leaves]
    if form is None or min(factors, default=0) < 0 or any(isinstance(leaf, Var) for leaf in leaves):
        return operate("max", size, Const(0, INT))
    total: Expr = Const(max(0, form.get("", 0)), INT)
    for leaf, factor in zip(leaves, factors, strict=True):
        if factor:
            total = total + Const(factor, INT) * leaf
    return total


SHORT, LONG, UNKNOWN = "short", "long", "unknown"
"""How long a loop is beside one that slides over the same axis."""


def compared(loop: For, other: For) -> str:
    """Return how long a loop is beside another; both are in one index, as ``i`` and ``p`` in ``x[i + p]``.

    The sizes of the short one bound both: ``i`` ends earlier, the longer ``p`` is.
    """
    own, theirs = _sizes(loop), _sizes(other)
    return SHORT if own < theirs else LONG if own > theirs else UNKNOWN


def _sizes(loop: For) -> set[Expr]:
    """Return the sizes in the bounds of a loop; of a clamp, in its operands without variables, if any."""
    found = set[Expr]()
    for clamp, bound in (("max", loop.lo), ("min", loop.hi)):
        ends = affine.operands(clamp, bound)
        fixed = [e for e in ends if not affine.varies(e)] or ends
        found |= {e for end in fixed for e in walk(end) if isinstance(e, Size)}
    return found


def _runs(expr: Expr, ranges: Ranges) -> bool:
    return isinstance(expr, Var) and expr.name in ranges
