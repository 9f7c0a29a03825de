"""Functions of numbers and arrays that NumPy does not have, or not as the language means them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dtypes import dtype
from .grammar import Type


def is_python(value: object) -> bool:
    """Whether a value is a Python number, not a NumPy scalar (np.float64 is also a float)."""
    return isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic)


def floating(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of floats that also takes integers, as the float type that NumPy converts them to."""

    def of_any(x: Any) -> Any:
        x_dtype = np.asarray(x).dtype
        return function(np.sqrt(np.ones((), x_dtype)).dtype.type(x) if x_dtype.kind in "biu" else x)

    return of_any


def each(function: Callable[[float], float]) -> Callable[[Any], Any]:
    """Return a function of a Python float as one of numbers of any kind and of rows."""

    def of_any(x: Any) -> Any:
        values = np.asarray(x)
        results = np.array([function(float(value)) for value in values.ravel()], values.dtype)
        return results.reshape(values.shape)[()]

    return floating(of_any)


def keeping_integers(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rounding function that keeps integers (NumPy before 2.1 converts them to floats)."""

    def rounded(x: Any) -> Any:
        kind = np.asarray(x).dtype.kind
        if kind not in "biu":
            return function(x)
        return int(x) if is_python(x) else np.int8(x) if kind == "b" else x

    return rounded


def without_bool(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that NumPy has for integers, and not for bools alone: they become int8."""

    def of_any(*values: Any) -> Any:
        if not all(np.asarray(v).dtype.kind == "b" for v in values if not is_python(v)):
            return function(*values)
        return function(*(v if is_python(v) else np.int8(v) for v in values))

    return of_any


@floating
def sigmoid(x: Any) -> Any:
    """Return 1 / (1 + exp(-x)), without overflow."""
    x = np.asarray(x)
    small, one = np.exp(-np.abs(x)), x.dtype.type(1)
    return np.where(x < 0, small, one)[()] / (one + small)


@floating
def rsqrt(x: Any) -> Any:
    """Return 1 / sqrt(x)."""
    return np.asarray(x).dtype.type(1) / np.sqrt(x)


def ceil_div(x: Any, y: Any) -> Any:
    """Return x / y, rounded up, of integers."""
    return (x + y - np.asarray(x).dtype.type(1)) // y


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
