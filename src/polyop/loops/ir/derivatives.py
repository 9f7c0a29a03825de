"""Derivatives that take more than a line: what the adjoint of a result contributes to each argument's.

A rule has the adjoint ``g``, the result ``y`` and the arguments. It returns a contribution for each argument;
None is no contribution. They are linear in ``g``, so a rule serves both modes: in reverse mode a contribution
is the gradient of an argument, in forward mode the tangent of the result for a tangent of that argument.

Ties: ``max(a, b)`` and ``min(a, b)`` of equal values belong to ``a``. ``abs`` and ``copysign`` have the
derivative 0 at 0. Where a function has none, IEEE arithmetic answers: ``sqrt`` at 0 gives infinity, as in
PyTorch and JAX. The adjoint of a conditional value is selected after the product, so that a NaN
of the branch that was not taken does not spread.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .grammar import Const, Expr, Op, Type, call
from .types import cast, number_of

Contributions = tuple[Expr | None, ...]
Rule = Callable[..., Expr | Contributions]


def number(value: float, of: Type) -> Const:
    """Return a float constant of a type."""
    return Const(float(value), of)


def times(a: Expr, b: Expr) -> Expr:
    """Return ``a * b``; a factor 1 is left out, a factor -1 is a sign."""
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Const) and one.value == 1:
            return other
        if isinstance(one, Const) and one.value == -1:
            return -other
    return a * b


def scaled(factor: float, a: Expr) -> Expr:
    """Return ``factor * a`` in the type of ``a``, which a float would widen if it is bfloat16."""
    return times(number(factor, a.type), a)


def choice(condition: Expr, then: Expr, otherwise: Expr) -> Expr:
    """Return one of two values of one type."""
    return Op("select", (condition, then, otherwise), then.type)


def none(_g: Expr, _y: Expr, *arguments: Expr) -> Contributions:
    """Of a function that is constant almost everywhere."""
    return (None,) * len(arguments)


def quotient(g: Expr, _y: Expr, a: Expr, b: Expr) -> Contributions:
    """Of ``a / b``: the second is in terms of ``a / b``, as ``b * b`` may overflow."""
    return g / b, -(g * (a / b) / b)


def power(g: Expr, y: Expr, a: Expr, b: Expr) -> Contributions:
    """Of ``pow(a, b)``; an exponent that is written has no adjoint."""
    if isinstance(b, Const):
        if b.value in (0, 1):
            return (None if b.value == 0 else g), None
        lower = a if b.value == 2 else call("pow", a, number(b.value - 1, b.type))
        return times(g, times(b, lower)), None
    zero = number(0.0, g.type)
    base = choice(call("==", b, 0), zero, g * (b * call("pow", a, b - 1)))
    flat = call("and", call("==", a, 0), b >= 0)
    return base, choice(flat, zero, g * (y * call("log", a)))


def extreme(g: Expr, is_first: Expr) -> Contributions:
    """Of ``max`` and ``min``: all of it goes to one argument."""
    zero = number(0.0, g.type)
    return choice(is_first, g, zero), choice(is_first, zero, g)


def atan2(g: Expr, _result: Expr, y: Expr, x: Expr) -> Contributions:
    """Of the angle of (x, y)."""
    square = x * x + y * y
    return g * x / square, -(g * y / square)


def hypot(g: Expr, y: Expr, a: Expr, b: Expr) -> Contributions:
    """Of ``sqrt(a * a + b * b)``; at (0, 0) it is taken as 0."""
    slope = choice(call("==", y, 0), number(0.0, y.type), g / y)
    return times(slope, a), times(slope, b)


def copysign(g: Expr, y: Expr, a: Expr, b: Expr) -> Contributions:
    """Of the first argument with the sign of the second."""
    return g * (call("sign", a) * call("copysign", number(1.0, y.type), b)), None


def bell(g: Expr, a: Expr, sign: float) -> Expr:
    """Of ``erf``, and of ``erfc`` with the sign -1."""
    return times(g, scaled(sign * 2 / math.sqrt(math.pi), call("exp", -(a * a))))


def asin(g: Expr, a: Expr) -> Expr:
    """Of ``asin``: 1 - a * a would cancel near 1."""
    return g / call("sqrt", (1 - a) * (1 + a))


def converted(g: Expr, _y: Expr, a: Expr) -> Expr:
    """Of ``cast``."""
    return cast(g, number_of(a.type))


def own(g: Expr, _y: Expr, *arguments: Expr) -> Contributions:
    """Of ``with_gradient(value, x, slope, ...)``: a product for each x."""
    pairs = ((times(g, slope), None) for slope in arguments[2::2])
    return (None, *(part for pair in pairs for part in pair))
