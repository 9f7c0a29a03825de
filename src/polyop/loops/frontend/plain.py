"""Run a loop kernel as plain Python on NumPy arrays: the definition of what a loop kernel means.

The interpreter of the IR and the compiled code must give the same results.
"""

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

    The function and its module stay unchanged. NumPy's warnings about overflow and division are
    silenced, as compiled code gives none. An input that the function writes is written in place.
    Raises ``ArgumentTypeError`` for anything but a Python function.

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
        hint = "write def f(...): with the loops, and make each value that partial fixes a parameter"
        raise ArgumentTypeError(subject, "must be a function made by def", type(original).__name__, hint=hint)
    words = {name: row.meaning for name, row in WORDS.items()}

    @functools.wraps(original)
    def run(*arguments: Any, **named: Any) -> Any:
        copy = FunctionType(
            original.__code__,
            {**original.__globals__, **words},  # copied at each call: names of the module may have new values
            original.__name__,
            original.__defaults__,
            original.__closure__,
        )
        copy.__kwdefaults__ = original.__kwdefaults__
        with np.errstate(all="ignore"):
            return copy(*arguments, **named)

    return run
