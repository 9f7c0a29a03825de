"""The operators of the IR as functions of NumPy scalars of their own type."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dtypes import dtype
from . import gamma
from .grammar import Type
from .philox import high_words, low_words


def _by_python(function: Callable[[float], float]) -> Callable[[Any], Any]:
    return lambda x: x.dtype.type(function(float(x)))


def sigmoid(x: Any) -> Any:
    """Return 1 / (1 + exp(-x)) of a NumPy scalar."""
    small, one = np.exp(-np.abs(x)), x.dtype.type(1)
    return (small if x < 0 else one) / (one + small)


def _ceil_div(x: Any, y: Any) -> Any:
    return (x + y - x.dtype.type(1)) // y


def _whole(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: x if x.dtype.kind in "iu" else function(x)  # as in NumPy 2.1; older ones return a float


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.true_divide, "//": np.floor_divide,
    "%": np.remainder, "pow": np.power, "max": np.maximum, "min": np.minimum, "atan2": np.arctan2,
    "hypot": np.hypot, "copysign": np.copysign, "fmod": np.fmod, "gcd": np.gcd, "lcm": np.lcm,
    "ceil_div": _ceil_div, "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor,
    "<<": np.left_shift, ">>": np.right_shift,
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
    "==": np.equal, "!=": np.not_equal, "not": np.logical_not, "neg": np.negative, "abs": np.abs,
    "sign": np.sign, "floor": _whole(np.floor), "ceil": _whole(np.ceil),
    "trunc": _whole(np.trunc), "round": _whole(np.rint),
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "sqrt": np.sqrt,
    "stop_gradient": lambda x: x, "with_gradient": lambda value, *_: value,
    "rsqrt": lambda x: x.dtype.type(1) / np.sqrt(x), "tanh": np.tanh, "cbrt": np.cbrt,
    "erf": _by_python(math.erf), "erfc": _by_python(math.erfc), "lgamma": _by_python(gamma.lgamma),
    "digamma": _by_python(gamma.digamma), "trigamma": _by_python(gamma.trigamma),
    "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "sinh": np.sinh, "cosh": np.cosh, "exp2": np.exp2,
    "log1p": np.log1p, "log2": np.log2, "sigmoid": sigmoid, "atan": np.arctan,
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
    "philox_low": low_words, "philox_high": high_words,
}  # fmt: skip
"""By operator; ``and``, ``or``, ``cast`` and ``select`` are not functions of their values."""


def as_type(values: Any, to: np.dtype[Any]) -> Any:
    """Return a NumPy scalar or array converted as compiled code converts it: whole.h says how.

    NumPy's own result for a float that an integer cannot hold depends on the machine, and on the length.

    >>> as_type(np.float32(-2), np.dtype("uint8")), as_type(np.float64("nan"), np.dtype("int32"))
    (np.uint8(254), np.int32(-2147483648))
    """
    values = np.asarray(values)
    if to.kind not in "iu" or values.dtype.kind in "biuc":
        return values.astype(to)[()]
    whole = np.trunc(values.astype(np.float64))
    limit = 2.0**31 if to.itemsize < 4 or to == np.int32 else 2.0**63
    above = (whole >= limit) & (to == np.uint64)
    whole = np.where(above, whole - limit, whole)
    numbers = np.where((whole >= -limit) & (whole < limit), whole, -limit).astype(np.int64)
    return (numbers ^ (above.astype(np.int64) << 63)).astype(to)[()]


def numpy_type(to: Type | str) -> Callable[[Any], Any]:
    """Return the constructor of a dtype's NumPy scalars."""
    return dtype(to if isinstance(to, str) else to.dtype).numpy.type
