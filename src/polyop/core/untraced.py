"""Functions that a framework's tracer leaves alone, with all that they call.

``torch.compile`` traces the Python frames that run within a compiled call, also those that C++
calls: a kernel over NumPy arrays would be traced as if its arrays were tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import TypeVar

Function = TypeVar("Function", bound=Callable[..., object])

_codes: dict[int, CodeType] = {}  # by identity: equal codes are different objects to a tracer
_exclude: list[Callable[[CodeType], None]] = []


def untraced(function: Function) -> Function:
    """Return the function itself, marked: C++ calls it, and no tracer follows.

    >>> @untraced
    ... def entry() -> int:
    ...     return 1
    >>> entry()
    1
    """
    code: CodeType = getattr(function, "__code__")  # noqa: B009 - of a Python function
    if id(code) not in _codes:
        _codes[id(code)] = code
        for exclude in _exclude:
            exclude(code)
    return function


def exclude_with(exclude: Callable[[CodeType], None]) -> None:
    """Give a tracer's function that excludes a code object: it gets all marked ones, and later ones."""
    _exclude.append(exclude)
    for code in list(_codes.values()):
        exclude(code)
