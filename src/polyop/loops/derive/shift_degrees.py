"""How a value changes with what exponents are shifted by, as in a softmax: the algebra of degrees.

A *shift* ``t`` is a number that is subtracted before an exponential, as the maximum in a softmax. With an
``A`` that depends on no shift:

    A                           degree (power 0, slope 0), FREE
    A + s * t + r * u           degree (power 0, slope s of t and r of u)
    A * exp(p * t + q * u)      degree (power p of t and q of u, slope 0)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ..ir.grammar import Const, Expr, Load, Op
from ..ir.types import kind

LinearForm = tuple[tuple[str, float], ...]
"""Pairs (shift, coefficient), sorted, without zeros."""


class Degree(NamedTuple):
    """The degree of a value: one of the two forms is empty. ``name`` is that of ZERO or UNKNOWN."""

    power: LinearForm = ()
    slope: LinearForm = ()
    name: str = ""


FREE = Degree()
ZERO = Degree(name="zero")
"""The degree of the number zero, which has any power."""
UNKNOWN = Degree(name="unknown")
MaybeDegree = Degree | None
"""None: no store that reaches the value has a degree yet."""


def shift(name: str) -> Degree:
    """Return the degree of a shift itself."""
    return Degree(slope=((name, 1.0),))


def degree_of(expr: Expr, read: Callable[[Load], MaybeDegree]) -> MaybeDegree:
    """Return the degree of an expression; ``read`` returns that of a load."""
    match expr:
        case Const(value=value):
            return ZERO if value == 0 else FREE
        case Load():
            return read(expr)
        case Op(name=name, args=args) if kind(expr.type) == "f" and name != "stop_gradient":
            degrees = [degree_of(a, read) for a in (args[1:] if name == "select" else args)]
            if any(degree is None for degree in degrees):
                return None
            return _combined(expr, [degree for degree in degrees if degree is not None])
    return FREE


def joined(a: MaybeDegree, b: MaybeDegree) -> MaybeDegree:
    """Return the degree of a value that has one of two degrees."""
    if a is None or b is None or a == b:
        return b if a is None else a
    for one, other in ((a, b), (b, a)):
        if one == ZERO and other != UNKNOWN and not other.slope:
            return other
    return UNKNOWN


def renamed(degree: Degree, names: Mapping[str, str]) -> Degree:
    """Return a degree with its shifts renamed."""
    power, slope = (_sum({}, [(names.get(n, n), c) for n, c in form]) for form in degree[:2])
    return Degree(power, slope, degree.name)


def _sum(form: Mapping[str, float], more: Sequence[tuple[str, float]], by: float = 1.0) -> LinearForm:
    """Return ``form + by * more``."""
    total = dict(form)
    for name, coefficient in more:
        total[name] = total.get(name, 0.0) + by * coefficient
    return tuple(sorted((name, c) for name, c in total.items() if c))


def _combined(node: Op, degrees: Sequence[Degree]) -> Degree:
    """Return the degree of an operator's result, from those of its arguments."""
    if UNKNOWN in degrees:
        return UNKNOWN
    if node.name in RULES:
        return RULES[node.name](node, *degrees)
    return FREE if all(degree in (FREE, ZERO) for degree in degrees) else UNKNOWN


def _plus(node: Op, a: Degree, b: Degree) -> Degree:
    """Return the degree of a sum or a difference."""
    if b == ZERO:
        return a
    if a == ZERO:
        return RULES["neg"](node, b) if node.name == "-" else b
    if not a.power and not b.power:
        return Degree(slope=_sum(dict(a.slope), b.slope, -1.0 if node.name == "-" else 1.0))
    return a if a == b else UNKNOWN


def _times(node: Op, a: Degree, b: Degree) -> Degree:
    """Return the degree of a product."""
    if ZERO in (a, b):
        return ZERO
    for one, other, factor in ((a, b, node.args[1]), (b, a, node.args[0])):
        if one.slope:
            value = factor.value if isinstance(factor, Const) else None
            scales = value is not None and other == FREE
            return Degree(slope=_sum({}, one.slope, float(value))) if scales and value else UNKNOWN
    return Degree(_sum(dict(a.power), b.power))


def _over(_node: Op, a: Degree, b: Degree) -> Degree:
    """Return the degree of a quotient."""
    if a.slope or b.slope or b == ZERO:
        return UNKNOWN
    return ZERO if a == ZERO else Degree(_sum(dict(a.power), b.power, -1.0))


def _either(_node: Op, a: Degree, b: Degree) -> Degree:
    """Return the degree of a value that is one of two."""
    degree = joined(a, b)
    assert degree is not None
    return degree


def _scaled(by: float) -> Callable[[Op, Degree], Degree]:
    """Return the rule of a function that multiplies powers by a number, as 0.5 of a square root."""

    def rule(_node: Op, a: Degree) -> Degree:
        return a if a == ZERO else UNKNOWN if a.slope else Degree(_sum({}, a.power, by))

    return rule


RULES: Mapping[str, Callable[..., Degree]] = {
    "+": _plus,
    "-": _plus,
    "*": _times,
    "/": _over,
    "neg": lambda node, a: a if a == ZERO else Degree(a.power, _sum({}, a.slope, -1.0)),
    "exp": lambda node, a: FREE if a == ZERO else UNKNOWN if a.power else Degree(a.slope),
    "log": lambda node, a: FREE if a == ZERO else UNKNOWN if a.slope else Degree(slope=a.power),
    "abs": _scaled(1.0),
    "sqrt": _scaled(0.5),
    "rsqrt": lambda node, a: FREE if a == ZERO else _scaled(-0.5)(node, a),
    "max": _either,
    "min": _either,
    "select": _either,
    "cast": lambda node, a: a,
}
"""By operator. The result of any other operator is FREE if its arguments are, and UNKNOWN otherwise."""
