"""Every operator of the language: a row says all that is known of it.

A function that operators can express needs no row here: ``frontend/composed.py`` has those.

>>> row = OPERATORS["log1p"]
>>> row.arity, row.result, row.cost, row.meaning(0.0)
(1, 'float', 8.0, np.float64(0.0))
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import derivatives as d
from . import gamma, scalars
from .derivatives import Rule, none, scaled, times
from .grammar import call
from .philox import high_words, low_words

SMALL, SLOW, SLOWER = 0.5, 8.0, 24.0
"""Costs of an addition, of a function such as ``exp``, and of one that takes several of these."""


def _lazy(*_values: Any) -> Any:
    raise AssertionError("and, or, cast and select are no functions of the values of their arguments")


@dataclass(frozen=True, slots=True)
class Operator:
    """A row: the number of arguments, the type of the result, and what it computes.

    ``result``: "same" as the arguments' common type; "bool"; "float" (an integer becomes a
    float first, by NumPy's rule: int8 float16, int16 float32, wider float64; a Python int float64);
    "cast", "select": see :class:`~polyop.loops.ir.grammar.Op`.
    An ``arity`` of 0 means any number.
    """

    name: str
    arity: int
    result: str = "same"
    kinds: str = "biuf"
    """The kinds of dtypes that it accepts (b i u f); with "f" alone an integer becomes a float too."""
    meaning: Callable[..., Any] = _lazy
    """What it computes of NumPy scalars of its type."""
    derivative: Rule | None = None
    """The adjoint ``g``, the result and the arguments to the contributions. None: it has none."""
    cost: float = SMALL
    """In units of :mod:`~polyop.loops.analysis.cost`."""
    is_word: bool = False
    """Whether a kernel calls it by its name, with as many inputs as it has arguments."""
    is_soft: bool = False
    """Whether a kernel may give the name to a variable or to a helper of its own, as kernels did before."""
    spellings: tuple[str, ...] = ()
    """Its other names in NumPy and ``math``."""
    is_exact: bool = False
    """Whether its C is right to the last bit or always declared, so that it has no precise version."""
    in_libm: bool = True
    """Whether libm has it for the precise version; its ``lgamma`` sets a variable of the whole process."""

    @property
    def has_precise_version(self) -> bool:
        """Whether math.h declares one, ``plp_name``, by libm."""
        return self.in_libm and not self.is_exact


def _function(
    name: str, meaning: Callable[[Any], Any], derivative: Rule | None, *, cost: float = SLOW, **more: Any
) -> Operator:
    """Return the row of a function of one float that a kernel calls by its name."""
    return Operator(name, 1, "float", "biuf", meaning, derivative, cost, is_word=True, **more)


def _rounding(
    name: str, meaning: Callable[[Any], Any], *, is_word: bool = True, spellings: tuple[str, ...] = ()
) -> Operator:
    keeping = scalars.keeping_integers(meaning)
    return Operator(
        name, 1, "same", "iuf", keeping, none, is_word=is_word, spellings=spellings, is_exact=True
    )


def _question(name: str, meaning: Callable[[Any], Any]) -> Operator:
    return Operator(name, 1, "bool", "f", meaning, is_word=True, is_exact=True)


_ROWS = (
    Operator("+", 2, meaning=np.add, derivative=lambda g, y, a, b: (g, g)),
    Operator("-", 2, meaning=np.subtract, derivative=lambda g, y, a, b: (g, -g)),
    Operator("*", 2, meaning=np.multiply, derivative=lambda g, y, a, b: (times(g, b), times(g, a))),
    Operator("/", 2, "float", meaning=np.true_divide, derivative=d.quotient, cost=SLOW),
    Operator("//", 2, meaning=np.floor_divide, derivative=none, cost=SLOW),
    Operator("%", 2, meaning=np.remainder, cost=SLOW,
             derivative=lambda g, y, a, b: (g, -(g * call("floor", a / b)))),
    Operator("fmod", 2, "same", "iuf", np.fmod, cost=SLOW, is_word=True, is_soft=True, in_libm=False,
             derivative=lambda g, y, a, b: (g, -(g * call("trunc", a / b)))),
    Operator("pow", 2, meaning=np.power, derivative=d.power, cost=SLOW),
    Operator("max", 2, meaning=np.maximum, derivative=lambda g, y, a, b: d.extreme(g, a >= b)),
    Operator("min", 2, meaning=np.minimum, derivative=lambda g, y, a, b: d.extreme(g, a <= b)),
    Operator("atan2", 2, "float", meaning=np.arctan2, derivative=d.atan2, cost=SLOW, is_word=True,
             spellings=("arctan2",)),
    Operator("hypot", 2, "float", meaning=np.hypot, derivative=d.hypot, cost=SLOW, is_word=True,
             is_soft=True),
    Operator("copysign", 2, "float", meaning=np.copysign, is_word=True, is_soft=True, is_exact=True,
             derivative=d.copysign),
    Operator("gcd", 2, "same", "iu", np.gcd, cost=SLOWER),
    Operator("lcm", 2, "same", "iu", np.lcm, cost=SLOWER),
    Operator("ceil_div", 2, "same", "iu", scalars.ceil_div),
    Operator("&", 2, "same", "biu", np.bitwise_and),
    Operator("|", 2, "same", "biu", np.bitwise_or),
    Operator("^", 2, "same", "biu", np.bitwise_xor),
    Operator("<<", 2, "same", "iu", np.left_shift),
    Operator(">>", 2, "same", "iu", np.right_shift),
    Operator("<", 2, "bool", meaning=np.less),
    Operator("<=", 2, "bool", meaning=np.less_equal),
    Operator(">", 2, "bool", meaning=np.greater),
    Operator(">=", 2, "bool", meaning=np.greater_equal),
    Operator("==", 2, "bool", meaning=np.equal),
    Operator("!=", 2, "bool", meaning=np.not_equal),
    Operator("and", 2, "bool", "b"),
    Operator("or", 2, "bool", "b"),
    Operator("not", 1, "bool", "b", np.logical_not),
    Operator("neg", 1, "same", "iuf", np.negative, lambda g, y, x: -g),
    Operator("abs", 1, meaning=np.abs, derivative=lambda g, y, x: g * call("sign", x), is_word=True,
             spellings=("absolute", "fabs"), is_exact=True),
    Operator("sign", 1, "same", "iuf", scalars.without_bool(np.sign), none, is_word=True, is_exact=True),
    _rounding("floor", np.floor),
    _rounding("ceil", np.ceil),
    _rounding("trunc", np.trunc, spellings=("fix",)),
    _rounding("round", np.rint, is_word=False),
    _function("exp", np.exp, lambda g, y, x: g * y),
    _function("exp2", np.exp2, lambda g, y, x: g * scaled(math.log(2), y), is_soft=True),
    _function("expm1", np.expm1, lambda g, y, x: g * (y + 1)),
    _function("log", np.log, lambda g, y, x: g / x),
    _function("log1p", np.log1p, lambda g, y, x: g / (1 + x), is_soft=True),
    _function("log2", np.log2, lambda g, y, x: scaled(1 / math.log(2), g / x), is_soft=True),
    _function("sqrt", np.sqrt, lambda g, y, x: scaled(0.5, g / y), is_exact=True),
    _function("rsqrt", scalars.rsqrt, lambda g, y, x: scaled(-0.5, g * (y / x)), is_exact=True),
    _function("cbrt", np.cbrt, lambda g, y, x: scaled(1 / 3, g / y / y), cost=SLOWER, is_soft=True),
    _function("sin", np.sin, lambda g, y, x: g * call("cos", x)),
    _function("cos", np.cos, lambda g, y, x: -(g * call("sin", x))),
    _function("tan", np.tan, lambda g, y, x: g * (1 + y * y), is_soft=True),
    _function("asin", np.arcsin, lambda g, y, x: d.asin(g, x), is_soft=True, spellings=("arcsin",)),
    _function("acos", np.arccos, lambda g, y, x: d.asin(-g, x), is_soft=True, spellings=("arccos",)),
    _function("atan", np.arctan, lambda g, y, x: g / (1 + x * x), spellings=("arctan",)),
    _function("sinh", np.sinh, lambda g, y, x: g * call("cosh", x), is_soft=True),
    _function("cosh", np.cosh, lambda g, y, x: g * call("sinh", x), is_soft=True),
    _function("tanh", np.tanh, lambda g, y, x: g * (1 - y * y)),
    _function("sigmoid", scalars.sigmoid, lambda g, y, x: g * (y * (1 - y)), is_soft=True, in_libm=False),
    _function("erf", scalars.each(math.erf), lambda g, y, x: d.bell(g, x, 1.0)),
    _function("erfc", scalars.each(math.erfc), lambda g, y, x: d.bell(g, x, -1.0), cost=SLOWER, is_soft=True),
    _function("lgamma", scalars.each(gamma.lgamma), lambda g, y, x: g * call("digamma", x), cost=SLOWER,
              is_soft=True, in_libm=False),
    _function("digamma", scalars.each(gamma.digamma), lambda g, y, x: g * call("trigamma", x), cost=SLOWER,
              is_soft=True, in_libm=False),
    _function("trigamma", scalars.each(gamma.trigamma), None, cost=SLOWER, is_soft=True, in_libm=False),
    _question("isnan", np.isnan),
    _question("isinf", np.isinf),
    _question("isfinite", np.isfinite),
    Operator("stop_gradient", 1, meaning=lambda x: x, derivative=none, is_word=True),
    Operator("with_gradient", 0, "same", "f", lambda value, *_: value, d.own),
    Operator("philox_low", 3, "same", "u", low_words, cost=SLOWER),
    Operator("philox_high", 3, "same", "u", high_words, cost=SLOWER),
    Operator("cast", 1, "cast", derivative=d.converted),
    Operator("select", 3, "select"),
)  # fmt: skip

OPERATORS: dict[str, Operator] = {row.name: row for row in _ROWS}
"""By name."""
