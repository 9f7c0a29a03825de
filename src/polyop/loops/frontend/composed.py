"""The functions of the language that are composed of other operators, as a table.

A row needs no C and no derivative of its own. Types are those of NumPy's function, or of the one of ``math``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.dtypes import dtype
from ..ir.grammar import BOOL, FLOAT, INT, Const, Expr, Type
from ..ir.operate import as_condition, as_int64, operate
from ..ir.types import Refusal, cast, counted, floating, is_python_bool, join, kind
from .meanings import greatest, in_float, least

DEGREES = 180.0


def _square(x: Expr) -> Expr:
    x = cast(x, INT if is_python_bool(x) else Type("int8")) if x.type == BOOL else x
    return x * x


def _clip(x: Expr, low: Expr, high: Expr) -> Expr:
    return operate("min", operate("max", x, low), high)


def _by_half_circle(factor: Callable[[np.floating, np.floating], np.floating]) -> Callable[[Expr], Expr]:
    """Return a function that multiplies by a constant of 180 and pi, which is rounded as NumPy rounds it."""

    def function(x: Expr) -> Expr:
        if kind(x.type) == "c":
            raise Refusal("degrees and radians take real numbers", x.type, "write real(z)")
        of = floating(counted(x.type))
        to = dtype("float64" if of.dtype == "float64" else "float32").numpy.type
        return cast(x, of) * Const(float(factor(to(DEGREES), to(math.pi))), of)

    return function


def _logical(name: str) -> Callable[..., Expr]:
    return lambda *inputs: operate(name, *map(as_condition, inputs))  # both are computed, as in NumPy


def _isclose(a: Expr, b: Expr, rtol: Expr, atol: Expr, equal_nan: Expr) -> Expr:
    b = cast(b, join(b.type, FLOAT))
    distance, size = operate("abs", a - b), operate("abs", b)
    within = distance <= atol + rtol * size
    close = operate("|", operate("&", within, operate("isfinite", b)), operate("==", a, b))
    both = operate("&", operate("isnan", a), operate("isnan", b))
    return operate("|", close, operate("&", as_condition(equal_nan), both))


def _isclose_of_math(a: Expr, b: Expr, rel_tol: Expr, abs_tol: Expr) -> Expr:
    a, b, rel_tol, abs_tol = (cast(one, FLOAT) for one in (a, b, rel_tol, abs_tol))
    difference = operate("abs", b - a)
    ends = [operate("abs", rel_tol * b), operate("abs", rel_tol * a), abs_tol]
    near = difference <= ends[0]
    for end in ends[1:]:
        near = operate("|", near, difference <= end)
    # an infinity is close to itself alone: its distance from another number is infinite too
    return operate("|", operate("&", near, operate("isfinite", difference)), operate("==", a, b))


def _int_of(name: str) -> Callable[[Expr], Expr]:
    def whole(x: Expr) -> Expr:
        x = operate(name, x)
        return as_int64(x) if kind(x.type) in "iu" else cast(x, INT)

    return whole


def round_to(x: Expr, digits: Expr) -> Expr:
    """Return ``round(x, digits)``. Raises ``Refusal`` for digits that are not written as a number."""
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


@dataclass(frozen=True, slots=True)
class Composed:
    """A row: a word, the expression of its inputs, and what it computes of numbers of NumPy and Python."""

    name: str
    expansion: Callable[..., Expr]
    meaning: Callable[..., Any]
    parameters: str = "x"
    """The names of the inputs, by which a call may give them."""
    defaults: tuple[Any, ...] = ()
    """The values of the last ``parameters``."""
    spellings: tuple[str, ...] = ()
    """Other names in NumPy and ``math``."""


def _isclose_of_numpy(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: Any = False) -> Any:
    return np.isclose(a, b, rtol, atol, equal_nan)


def _isclose_of_python(a: Any, b: Any, rel_tol: float = 1e-9, abs_tol: float = 0.0) -> bool:
    return math.isclose(a, b, rel_tol=rel_tol, abs_tol=abs_tol)


ROWS = (
    Composed("square", _square, np.square),
    Composed("clip", _clip, lambda a, a_min, a_max: least(greatest(a, a_min), a_max), "a a_min a_max"),
    Composed("degrees", _by_half_circle(lambda degrees, pi: degrees / pi), in_float(np.degrees),
             spellings=("rad2deg",)),
    Composed("radians", _by_half_circle(lambda degrees, pi: pi / degrees), in_float(np.radians),
             spellings=("deg2rad",)),
    Composed("logical_and", _logical("&"), np.logical_and, "x1 x2"),
    Composed("logical_or", _logical("|"), np.logical_or, "x1 x2"),
    Composed("logical_xor", _logical("^"), np.logical_xor, "x1 x2"),
    Composed("logical_not", _logical("not"), np.logical_not),
    Composed("isclose", _isclose, _isclose_of_numpy, "a b rtol atol equal_nan", (1e-5, 1e-8, False)),
    Composed("math.isclose", _isclose_of_math, _isclose_of_python, "a b rel_tol abs_tol", (1e-9, 0.0)),
    Composed("math.floor", _int_of("floor"), math.floor),
    Composed("math.ceil", _int_of("ceil"), math.ceil),
    Composed("math.trunc", _int_of("trunc"), int),  # math.trunc takes no float32 of NumPy
)  # fmt: skip
