"""What the language's functions compute in plain Python, where NumPy's function alone is not enough."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import dtype
from ..ir.grammar import Type
from ..ir.operators import OPERATORS
from ..ir.scalars import as_type, is_python, without_bool
from ..ir.types import BYTE_FLOATS, number_of
from .byte_floats import as_byte_floats, numbers


def of_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, changed to give a Python number if all its inputs are Python numbers."""

    @functools.wraps(function)
    def word(*values: Any, **named: Any) -> Any:
        if not all(map(is_python, (*values, *named.values()))):
            return function(*map(numbers, values), **named)
        # a bool becomes 0 or 1 first: NumPy would compute exp(True) in float16
        whole = (int(v) if isinstance(v, bool) else v for v in values)
        return np.asarray(function(*whole, **named)).item()

    return word


def complex_number(re: Any, im: Any = 0) -> Any:
    """Return ``re + 1j * im``, with -0.0 and infinities as they are."""
    typed = [np.asarray(x).dtype for x in (re, im) if not is_python(x)]
    is_whole = all(one.kind in "biu" for one in typed)  # so are no dtypes at all: Python numbers
    of = np.complex128 if is_whole else np.result_type(*(np.result_type(one, np.complex64) for one in typed))
    whole = np.zeros(np.broadcast_shapes(np.shape(re), np.shape(im)), of)
    whole.real, whole.imag = re, im  # re + 1j * im would lose -0.0 and infinities
    return whole[()]


def extreme(function: Callable[[Any, Any], Any], of_row: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return the greatest or least of several numbers, or of the elements of one row."""

    def one_of(a: Any, b: Any) -> Any:
        try:
            return function(a, b)
        except OverflowError:  # a Python int that the other's dtype does not hold: it is kept as it is
            if np.ndim(a) or np.ndim(b):
                raise
            return a if (a > b) == (function is np.maximum) else b

    return lambda *values: functools.reduce(one_of, values) if len(values) > 1 else of_row(values[0])


greatest = extreme(np.maximum, np.max)
least = extreme(np.minimum, np.min)


def where(condition: Any, then: Any, otherwise: Any) -> Any:
    """Return NumPy's ``where``, of all dtypes of kernels."""
    try:
        return np.where(condition, then, otherwise)[()]
    except TypeError:  # it has no dtype for bfloat16 beside float16 or an integer; np.maximum has
        of = np.maximum(then, otherwise).dtype
        return np.where(condition, np.asarray(then).astype(of), np.asarray(otherwise).astype(of))[()]


def cast(name: str) -> Callable[[Any], Any]:
    """Return the conversion to a dtype, which is also the dtype by its name."""
    numbers_dtype = dtype(number_of(Type(name)).dtype).numpy

    def convert(x: Any) -> Any:
        value = as_type(x, numbers_dtype)  # an integer wraps and a float is cut off; x_type(x) would raise
        return value.astype(dtype(name).numpy).astype(numbers_dtype)[()] if name in BYTE_FLOATS else value

    convert.__name__ = name  # also a dtype, by its name: output_tensor(x.shape, float32)
    convert.dtype = dtype(name).numpy  # type: ignore[attr-defined]  # NumPy reads it: x.dtype == float32
    return convert


def zeros(shape: Sequence[int] | int, dtype_like: Any, scope: str = "global") -> Any:
    """Return a tensor of the kernel's own."""
    del scope
    sizes = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    return as_byte_floats(np.zeros(sizes, dtype(dtype_like).numpy))


def grid(extents: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield the indices of several loops."""
    return itertools.product(*map(range, extents))


def without_meaning(*inputs: Any) -> contextlib.AbstractContextManager[None]:
    """Return the context of a ``with`` that is a note to another compiler."""
    del inputs
    return contextlib.nullcontext()


def with_gradient(value: Any, *pairs: Any) -> Any:
    """Return the value; a Python number takes the dtype of the others."""
    typed = [np.asarray(x).dtype for x in pairs if not is_python(x)]
    return np.result_type(*typed).type(value) if typed and is_python(value) else value


def round_number(x: Any, digits: int = 0) -> Any:
    """Return a number with so many digits after the point."""
    return without_bool(np.round)(x, digits) if digits else OPERATORS["round"].meaning(x)


def in_float(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function of NumPy that also takes bfloat16, for which NumPy has none."""

    def of_any(x: Any) -> Any:
        of = np.asarray(x).dtype
        return function(x) if of.kind in "biufc" else function(np.asarray(x, np.float32)).astype(of)[()]

    return of_any


def folded(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return a function of two integers as one of two or more, bools among them."""
    return lambda *values: functools.reduce(without_bool(function), values)
