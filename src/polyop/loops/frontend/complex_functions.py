"""The operators of complex numbers as functions of pairs of real numbers, in a table.

The constants 0 and 1 are left out: ``1j * x`` is a pair without an operation. So a product with a real number
is two products, as in C; NumPy converts it to a complex number first: they differ in infinities and NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ...core.dtypes import dtype
from ..ir.grammar import BOOL, Const, Expr, Op, Type

Share = Callable[[Expr], Expr]
"""Returns a value that is read several times."""


class Pair(NamedTuple):
    """The real and the imaginary part."""

    re: Expr
    im: Expr


def op(name: str, *args: Expr, to: Type | None = None) -> Op:
    """Return an operator of numbers of one type, of which the result is too."""
    return Op(name, args, args[0].type if to is None else to)


def chosen(condition: Expr, then: Expr, otherwise: Expr) -> Expr:
    """Return one of two values."""
    return then if then == otherwise else Op("select", (condition, then, otherwise), then.type)


def _is(value: Expr, number: float) -> bool:
    return isinstance(value, Const) and value.value == number


def _plus(a: Expr, b: Expr) -> Expr:
    return b if _is(a, 0) else a if _is(b, 0) else op("+", a, b)


def _minus(a: Expr, b: Expr) -> Expr:
    return a if _is(b, 0) else negative(b) if _is(a, 0) else op("-", a, b)


def _times(a: Expr, b: Expr) -> Expr:
    if _is(a, 0) or _is(b, 1):
        return a
    return b if _is(b, 0) or _is(a, 1) else op("*", a, b)


def negative(a: Expr) -> Expr:
    """Return ``-a``."""
    return Const(-a.value, a.type) if isinstance(a, Const) else op("neg", a)


def product(a: Pair, b: Pair, share: Share) -> Pair:
    """Return ``a * b``."""
    a, b = Pair(*map(share, a)), Pair(*map(share, b))
    re = _minus(_times(a.re, b.re), _times(a.im, b.im))
    return Pair(re, _plus(_times(a.re, b.im), _times(a.im, b.re)))


def quotient(a: Pair, b: Pair, share: Share) -> Pair:
    """Return ``a / b`` by Smith's method, as NumPy does: no part is squared, so none overflows by that.

    By zero each part is divided by 0.0, so that it is infinite, or NaN for 0 / 0.
    """
    if _is(b.im, 0):
        divisor = share(b.re)
        return Pair(op("/", a.re, divisor), a.im if _is(a.im, 0) else op("/", a.im, divisor))
    a, b = Pair(*map(share, a)), Pair(*map(share, b))
    wide = share(op(">=", op("abs", b.re), op("abs", b.im), to=BOOL))
    large, small = share(chosen(wide, b.re, b.im)), share(chosen(wide, b.im, b.re))
    zero = Const(0.0, large.type)
    none = share(op("==", large, zero, to=BOOL))
    ratio = share(op("/", small, large))
    divisor = share(chosen(none, zero, op("+", large, op("*", small, ratio))))
    x, y = share(chosen(wide, a.re, a.im)), share(chosen(wide, a.im, a.re))
    im = share(chosen(none, y, _minus(y, _times(x, ratio))))
    re = chosen(none, x, _plus(x, _times(y, ratio)))
    return Pair(op("/", re, divisor), op("/", chosen(wide, im, negative(im)), divisor))


def _angle(z: Pair) -> Expr:
    return op("atan2", z.im, z.re)


def _abs(z: Pair) -> Expr:
    return op("abs", z.re) if _is(z.im, 0) else op("hypot", z.re, z.im)


def _scaled(size: Expr, wave: Expr, share: Share) -> Expr:
    """Return ``size * wave`` of a number that may overflow and a sine or cosine: a zero stays a zero."""
    if isinstance(size, Const):
        return _times(size, wave)
    size, wave = share(size), share(wave)
    is_none = op("and", op("isinf", size, to=BOOL), op("==", wave, Const(0.0, wave.type), to=BOOL), to=BOOL)
    return chosen(is_none, op("*", op("sign", size), wave), op("*", size, wave))


def _exp(z: Pair, share: Share) -> Pair:
    size: Expr = Const(1.0, z.re.type) if _is(z.re, 0) else share(op("exp", z.re))
    if _is(z.im, 0):
        return Pair(size, z.im)
    angle = share(z.im)
    return Pair(_times(size, op("cos", angle)), _scaled(size, op("sin", angle), share))


def _log(z: Pair, share: Share) -> Pair:
    """Return the logarithm: of the larger part, and of what the other adds; no part is squared."""
    z = Pair(*map(share, z))
    if _is(z.im, 0):
        return Pair(op("log", _abs(z)), _angle(z))
    wide = share(op(">=", op("abs", z.re), op("abs", z.im), to=BOOL))
    large, small = share(chosen(wide, z.re, z.im)), share(chosen(wide, z.im, z.re))
    zero, half, one = (Const(number, large.type) for number in (0.0, 0.5, 1.0))
    is_end = op("or", op("==", large, zero, to=BOOL), op("isinf", large, to=BOOL), to=BOOL)
    are_alike = op("==", op("abs", large), op("abs", small), to=BOOL)
    both = op("and", are_alike, is_end, to=BOOL)  # 0 / 0 and inf / inf are NaN
    ratio = share(chosen(both, one, op("/", small, large)))
    more = op("*", half, op("log1p", op("*", ratio, ratio)))
    return Pair(op("+", op("log", op("abs", large)), more), _angle(z))


def _sqrt(z: Pair, share: Share) -> Pair:
    """Return the root in the right half-plane. Its imaginary part has the sign of that of z, also of -0.0.

    Absolute values are chosen by the sign, not by ``abs``, whose derivative at zero is zero.
    """
    re, im = map(share, z)
    zero, half, one = (Const(number, re.type) for number in (0.0, 0.5, 1.0))
    is_zero = op("==", im, zero, to=BOOL)
    below = share(op("<", Op("select", (is_zero, op("/", one, im), im), im.type), zero, to=BOOL))
    right = share(op(">=", re, zero, to=BOOL))
    scale, back = _to_the_middle(op("max", op("abs", re), op("abs", im)), share)
    width = share(op("*", chosen(right, re, negative(re)), scale))
    height = share(op("*", chosen(below, negative(im), im), scale))
    is_endless = share(op("isinf", im, to=BOOL))
    root = op("sqrt", op("*", half, op("+", _abs(Pair(width, height)), width)))
    large = share(chosen(is_endless, height, root))
    none = op("==", large, zero, to=BOOL)
    small = chosen(is_endless, height, chosen(none, zero, op("/", height, op("+", large, large))))
    large, small = share(op("*", large, back)), share(op("*", small, back))
    upper = share(chosen(right, small, large))
    return Pair(chosen(right, large, small), chosen(below, negative(upper), upper))


def _to_the_middle(size: Expr, share: Share) -> tuple[Expr, Expr]:
    """Return a power of 4 by which a size is away from the limits of its dtype, and what its root undoes."""
    limits = np.finfo(dtype(size.type.dtype).numpy)
    size = share(size)
    big, little = (Const(float(x), size.type) for x in (limits.max / 4, limits.tiny / limits.eps))
    is_big, is_little = (share(op(name, size, end, to=BOOL)) for name, end in ((">", big), ("<", little)))

    def where(too_large: float, too_small: float) -> Expr:
        large, small, none = (Const(number, size.type) for number in (too_large, too_small, 1.0))
        return share(chosen(is_big, large, chosen(is_little, small, none)))

    return where(2.0**-4, 2.0**64), where(2.0**2, 2.0**-32)


def _wave(re: tuple[str, str], im: tuple[str, str], sign: int) -> Callable[..., Pair]:
    """Return a function whose parts are a hyperbolic function of one part, times a wave of the other."""

    def part(names: tuple[str, str], values: Pair, share: Share) -> Expr:
        one, other = (op(name, value) for name, value in zip(names, values, strict=True))
        size, wave = (one, other) if names[0] in ("sinh", "cosh") else (other, one)
        return _scaled(size, wave, share)

    def function(z: Pair, share: Share) -> Pair:
        values = Pair(*map(share, z))
        imaginary = part(im, values, share)
        return Pair(part(re, values, share), imaginary if sign > 0 else negative(imaginary))

    return function


def _both(name: str) -> Callable[..., Pair]:
    return lambda z, _: Pair(op(name, z.re), op(name, z.im))


def _test(combine: str, name: str) -> Callable[..., Pair]:
    def test(*pairs_and_share: Any) -> Pair:
        *pairs, _ = pairs_and_share
        parts = [op(name, *column, to=BOOL) for column in zip(*pairs, strict=True)]
        whole = op(combine, *parts, to=BOOL)
        return Pair(whole, whole)

    return test


def _part(function: Callable[[Pair], Expr]) -> Callable[..., Pair]:
    def part(z: Pair, share: Share) -> Pair:
        del share
        value = function(z)
        return Pair(value, value)

    return part


FUNCTIONS: Mapping[str, Callable[..., Pair]] = {
    "+": lambda a, b, _: Pair(_plus(a.re, b.re), _plus(a.im, b.im)),
    "-": lambda a, b, _: Pair(_minus(a.re, b.re), _minus(a.im, b.im)),
    "neg": lambda z, _: Pair(negative(z.re), negative(z.im)),
    "conj": lambda z, _: Pair(z.re, negative(z.im)),
    "stop_gradient": _both("stop_gradient"),
    "exp": _exp,
    "log": _log,
    "sqrt": _sqrt,
    "sin": _wave(("sin", "cosh"), ("cos", "sinh"), 1),
    "cos": _wave(("cos", "cosh"), ("sin", "sinh"), -1),
    "sinh": _wave(("sinh", "cos"), ("cosh", "sin"), 1),
    "cosh": _wave(("cosh", "cos"), ("sinh", "sin"), 1),
    "real": lambda z, _: Pair(z.re, z.re),
    "imag": lambda z, _: Pair(z.im, z.im),
    "abs": _part(_abs),
    "angle": _part(_angle),
    "==": _test("and", "=="),
    "!=": _test("or", "!="),
    "isnan": _test("or", "isnan"),
    "isinf": _test("or", "isinf"),
    "isfinite": _test("and", "isfinite"),
}
"""By operator: a function of the pairs, and of a function that keeps a value that is read several times.

One that gives a real number or a bool gives it as both parts.
"""
