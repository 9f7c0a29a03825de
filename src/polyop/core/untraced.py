"""``untraced`` marks functions that no tracer may trace, nor what they call; ``Paused`` stops tracers.

``torch.compile`` traces the Python frames that run within a compiled call, also those that C++ calls. Without
the mark it would trace a kernel over NumPy arrays as if the arrays were tensors. Paddle interprets frames
too, and leaves out nothing but whole files. A kernel is in a file of its author, and the methods that
``dataclass`` writes are in none, so Paddle is stopped while they run.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import TypeVar

Function = TypeVar("Function", bound=Callable[..., object])

_codes: dict[int, CodeType] = {}  # by id(): a tracer tells equal code objects apart
_exclude: list[Callable[[CodeType], None]] = []
_pauses: list[Callable[[], Callable[[], object]]] = []


def untraced(function: Function) -> Function:
    """Mark a function that C++ calls, so that no tracer traces it; return the function itself.

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
    """Call ``exclude``, a tracer's function, with the code of all marked functions, also of later ones."""
    _exclude.append(exclude)
    for code in list(_codes.values()):
        exclude(code)


def pause_with(pause: Callable[[], Callable[[], object]]) -> None:
    """Have :class:`Paused` call ``pause``: it stops a tracer in this thread, and returns what resumes it."""
    _pauses.append(pause)


class Paused:
    """``with Paused():`` runs what no traced program may contain: kernels, rules, polyop's compiler.

    It is no generator of ``contextlib``: Paddle goes on when a function of ``contextlib`` returns.
    """

    def __enter__(self) -> None:
        """Stop the tracers."""
        self._resume = [pause() for pause in _pauses]

    def __exit__(self, *problem: object) -> None:
        """Let them go on."""
        for resume in reversed(self._resume):
            resume()
