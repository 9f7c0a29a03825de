"""Interval analysis: the integers that an expression may be, whatever the call.

>>> from .grammar import INT
>>> interval(Op("-", (Size("x", 0), Const(1, INT)), INT), {})
(-1, 4611686018427387903)
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from ...core.dtypes import dtype
from .grammar import Const, Expr, Op, Size, Type, Var
from .types import kind

Interval = tuple[int, int]
"""The least and the greatest value."""
Intervals = Mapping[str, Interval]
"""By variable, where more is known than its type."""
SIZES = (0, 2**62)
"""No tensor has more elements along a dimension: see ``analysis.sizes.MAX_BYTES``."""


def interval_of_type(of: Type) -> Interval:
    """Return the numbers of an integer type, or of bool."""
    if kind(of) == "b":
        return 0, 1
    info = np.iinfo(dtype(of.dtype).numpy)
    return int(info.min), int(info.max)


def is_within(one: Interval, other: Interval) -> bool:
    """Whether an interval is a part of another one."""
    return other[0] <= one[0] and one[1] <= other[1]


def interval(expr: Expr, known: Intervals) -> Interval:
    """Return the least and the greatest value that an integer expression may have, as it is compiled."""
    found, whole = unwrapped(expr, known), interval_of_type(expr.type)
    return found if found is not None and is_within(found, whole) else whole


def unwrapped(expr: Expr, known: Intervals) -> Interval | None:
    """Return the interval of an expression, of which the last operator does not wrap; None if unknown."""
    match expr:
        case Const(value=value):
            return int(value), int(value)
        case Size():
            return SIZES
        case Var(name=name):
            return known.get(name)
        case Op(name=name, args=args) if all(kind(a.type) in "iub" for a in args):
            return _of_operator(name, [interval(a, known) for a in args])
    return None


def _of_operator(name: str, args: list[Interval]) -> Interval | None:
    match name, args:
        case "cast", [one]:
            return one
        case "neg", [(low, high)]:
            return -high, -low
        case "+", [one, other]:
            return one[0] + other[0], one[1] + other[1]
        case "-", [one, other]:
            return one[0] - other[1], one[1] - other[0]
        case "*", [one, other]:
            ends = [a * b for a, b in itertools.product(one, other)]
            return min(ends), max(ends)
        case "min", [one, other]:
            return min(one[0], other[0]), min(one[1], other[1])
        case "max", [one, other]:
            return max(one[0], other[0]), max(one[1], other[1])
        case "//", [(low, high), (least, most)] if least > 0:
            ends = [a // b for a, b in itertools.product((low, high), (least, most))]
            return min(ends), max(ends)
        case "%", [_, (least, most)] if least > 0:
            return 0, most - 1
        case "&", [one, other] if max(one[0], other[0]) >= 0:
            return 0, min(most for least, most in (one, other) if least >= 0)
        case ">>", [(low, high), (least, most)] if least == most >= 0:
            return low >> least, high >> least
        case "select", [_, one, other]:
            return min(one[0], other[0]), max(one[1], other[1])
    return None
