"""Words that are made of operators: a table of functions of typed expressions.

A row needs no C and no derivative of its own. Types are those of NumPy's function, or of the one of ``math``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from ...core.dtypes import dtype
from ..ir.grammar import BOOL, FLOAT, INT, Const, Expr, Type
from ..ir.operate import as_condition, as_int64, operate
from ..ir.types import Refusal, cast, counted, floating, is_python_bool, join, kind

DEGREES = 180.0


def _square(x: Expr) -> Expr:
    x = cast(x, INT if is_python_bool(x) else Type("int8")) if x.type == BOOL else x
    return operate("*", x, x)


def _clip(x: Expr, low: Expr, high: Expr) -> Expr:
    return operate("min", operate("max", x, low), high)


def _by_half_circle(factor: Callable[[np.floating, np.floating], np.floating]) -> Callable[[Expr], Expr]:
    """Return a function that multiplies by a constant of 180 and pi, which is rounded as NumPy rounds it."""

    def function(x: Expr) -> Expr:
        if kind(x.type) == "c":
            raise Refusal("degrees and radians take real numbers", x.type, "write real(z)")
        of = floating(counted(x.type))
        to = dtype("float64" if of.dtype == "float64" else "float32").numpy.type
        return operate("*", cast(x, of), Const(float(factor(to(DEGREES), to(math.pi))), of))

    return function


def _logical(name: str) -> Callable[..., Expr]:
    return lambda *inputs: operate(name, *map(as_condition, inputs))  # both are computed, as in NumPy


def _isclose(a: Expr, b: Expr, rtol: Expr, atol: Expr, equal_nan: Expr) -> Expr:
    b = cast(b, join(b.type, FLOAT))
    distance, size = operate("abs", operate("-", a, b)), operate("abs", b)
    within = operate("<=", distance, operate("+", atol, operate("*", rtol, size)))
    close = operate("|", operate("&", within, operate("isfinite", b)), operate("==", a, b))
    both = operate("&", operate("isnan", a), operate("isnan", b))
    return operate("|", close, operate("&", as_condition(equal_nan), both))


def _isclose_of_math(a: Expr, b: Expr, rel_tol: Expr, abs_tol: Expr) -> Expr:
    a, b, rel_tol, abs_tol = (cast(one, FLOAT) for one in (a, b, rel_tol, abs_tol))
    difference = operate("abs", operate("-", b, a))
    ends = [operate("abs", operate("*", rel_tol, b)), operate("abs", operate("*", rel_tol, a)), abs_tol]
    near = operate("<=", difference, ends[0])
    for end in ends[1:]:
        near = operate("|", near, operate("<=", difference, end))
    # an infinity is close to itself alone: its distance from another number is infinite too
    return operate("|", operate("&", near, operate("isfinite", difference)), operate("==", a, b))


def _int_of(name: str) -> Callable[[Expr], Expr]:
    def whole(x: Expr) -> Expr:
        x = operate(name, x)
        return as_int64(x) if kind(x.type) in "iu" else cast(x, INT)

    return whole


def _round(x: Expr, digits: Expr) -> Expr:
    if not isinstance(digits, Const) or digits.type != INT:
        raise Refusal("the digits of round are a number in the text", hint="write round(x * scale) / scale")
    if kind(x.type) in "iub":
        if digits.value < 0:
            hint = "write (x + 5) // 10 * 10, which rounds halves up"
            raise Refusal("round of an integer takes no negative digits", hint=hint)
        return x
    scale = Const(10.0 ** abs(int(digits.value)), FLOAT)
    of = x.type
    first, last = ("*", "/") if digits.value >= 0 else ("/", "*")
    return cast(operate(last, operate("round", operate(first, x, scale)), scale), of)


COMPOSED: Mapping[str, Callable[..., Expr]] = {
    "square": _square,
    "clip": _clip,
    "degrees": _by_half_circle(lambda degrees, pi: degrees / pi),
    "radians": _by_half_circle(lambda degrees, pi: pi / degrees),
    "logical_and": _logical("&"),
    "logical_or": _logical("|"),
    "logical_xor": _logical("^"),
    "logical_not": _logical("not"),
    "isclose": _isclose,
    "math.isclose": _isclose_of_math,
    "math.floor": _int_of("floor"),
    "math.ceil": _int_of("ceil"),
    "math.trunc": _int_of("trunc"),
    "round": _round,
}
"""By word. ``round`` of one number is an operator; of two, the second is how many digits are kept."""
