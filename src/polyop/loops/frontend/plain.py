"""The function as plain Python on NumPy arrays: the definition of what a loop kernel means."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from ...core.errors import ArgumentTypeError
from .language import WORDS
from .wrapped import unwrapped


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a copy of the function that sees the words of the language as its globals.

    The function and its module stay as they are. NumPy's warnings about overflow and
    division are silent, as they are in compiled code; an input that the function writes
    is written. Raises ``ArgumentTypeError`` for anything but a function of Python.

    >>> def double(x):
    ...     y = output_tensor(x.shape, x.dtype)
    ...     for i in range(x.shape[0]):
    ...         y[i] = x[i] * 2
    ...     return y
    >>> plain(double)(np.ones(2, np.float32))
    array([2., 2.], dtype=float32)
    """
    original = unwrapped(function)
    if not isinstance(original, FunctionType):
        subject = f"the loop kernel {getattr(function, '__name__', function)}"
        hint = "write def f(...): with the loops, and pass it what was fixed beforehand as arguments"
        raise ArgumentTypeError(subject, "must be a function made by def", type(original).__name__, hint=hint)
    words = {name: row.meaning for name, row in WORDS.items()}

    @functools.wraps(original)
    def run(*arguments: Any, **named: Any) -> Any:
        copy = FunctionType(
            original.__code__,
            {**original.__globals__, **words},  # at each call: the module's names as they are now
            original.__name__,
            original.__defaults__,
            original.__closure__,
        )
        copy.__kwdefaults__ = original.__kwdefaults__
        with np.errstate(all="ignore"):
            return copy(*arguments, **named)

    return run
