"""Run a loop kernel as plain Python on NumPy arrays: the definition of what a loop kernel means.

The interpreter of the IR and the compiled code must give the same results.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CellType, FunctionType, ModuleType
from typing import Any

import numpy as np

from ...core.errors import ArgumentTypeError
from .byte_floats import as_array, as_byte_floats
from .desugar.makers import MAKERS, made
from .desugar.spellings import is_module_of_words, word_of
from .language import WORDS
from .records import with_records
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

    @functools.wraps(original)
    def run(*arguments: Any, **named: Any) -> Any:
        copy = _with_words(original, {})  # at each call: names of the module may have new values
        with np.errstate(all="ignore"):
            named = {
                n: as_byte_floats(one) for n, one in with_records(original, len(arguments), named).items()
            }
            results = copy(*map(as_byte_floats, arguments), **named)
        return tuple(map(as_array, results)) if isinstance(results, tuple) else as_array(results)

    return run


def _with_words(function: FunctionType, copies: dict[FunctionType, FunctionType]) -> FunctionType:
    """Return a copy of a function, and of the helpers that it calls, that see the words of the language."""
    if function in copies:
        return copies[function]
    names = {**function.__globals__}
    cells = function.__closure__ or ()
    copy = FunctionType(
        function.__code__,
        names,
        function.__name__,
        function.__defaults__,
        tuple(CellType(*_contents(cell)) for cell in cells),
    )
    copies[function] = copy
    copy.__kwdefaults__ = function.__kwdefaults__
    for name in function.__code__.co_names:
        if name in names:
            names[name] = _seen(names[name], copies)
    for cell in copy.__closure__ or ():
        for value in _contents(cell):
            cell.cell_contents = _seen(value, copies)
    own = {name for name, row in WORDS.items() if row.is_soft and isinstance(names.get(name), FunctionType)}
    names.update({name: row.meaning for name, row in WORDS.items() if name not in own})
    return copy


def _contents(cell: CellType) -> tuple[Any, ...]:
    """Return the value of a cell, or nothing for one that is empty still."""
    try:
        return (cell.cell_contents,)
    except ValueError:
        return ()


def _seen(value: Any, copies: dict[FunctionType, FunctionType]) -> Any:
    """Return what a kernel sees of a value from outside: helpers and modules have the words' meaning."""
    if isinstance(value, FunctionType) and not hasattr(value, "__wrapped__"):
        return _with_words(value, copies)
    return _Module(value) if is_module_of_words(value) else as_byte_floats(value)


class _Module:
    """NumPy or ``math``, with the words of the language in place of the functions that mean the same."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        word = word_of(self._module, name)
        if word is not None:
            return WORDS[word].meaning
        value = getattr(self._module, name)
        return made(value) if self._module is np and name in MAKERS else value
