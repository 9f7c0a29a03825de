"""Take polyop's own frames out of the tracebacks of errors, as JAX does with its own.

    author's cell                     author's cell
    polyop: _slow, call, launch  ->   author's kernel
    author's kernel

It costs nothing where no error is raised. POLYOP_TRACEBACK=full keeps all frames. An error that is no
``PolyopError``, and to which no code of the author led from polyop, is a bug, and keeps them too. Python 3.10
always shows them: there a bare ``raise`` goes on with the old traceback.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, TypeVar

from .errors import PolyopError

Function = TypeVar("Function", bound=Callable[..., Any])

_HIDDEN = {"polyop", "torch", "jax", "jaxlib", "mindspore", "paddle", "numpy", "dask", "xarray"}
"""Top-level packages whose frames below polyop's first are no author's."""


def quiet(function: Function) -> Function:
    """Return the function with errors that show no frame of polyop.

    For what is called seldom; other functions say ``except Exception as problem: hide_own(problem); raise``.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as problem:
            hide_own(problem)
            raise

    return call  # type: ignore[return-value]


def hide_own(problem: BaseException) -> None:
    """Take the frames of polyop, and of frameworks that it called, out of an error's traceback.

    Call it in the outermost function of polyop, before a bare ``raise``, which adds no frame of its own.
    """
    if os.environ.get("POLYOP_TRACEBACK") == "full":
        return
    inside = itertools.dropwhile(lambda frame: not _is_hidden(frame), _frames(problem.__traceback__))
    if not isinstance(problem, PolyopError) and all(map(_is_hidden, inside)):
        return
    one: BaseException | None = problem
    seen: set[int] = set()
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        one.__traceback__ = _shown(one)
        context = one.__context__
        if isinstance(one, PolyopError) and context is not None and _is_own(context):
            one.__suppress_context__ = True  # polyop tried something, and the error says what is wrong
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
        if one is not None and one.__traceback__ is not None and not _is_hidden(one.__traceback__):
            return  # the author's: it was raised before polyop was called


def _shown(problem: BaseException) -> TracebackType | None:
    """Return the traceback of an author's frames, and what an error of the author has behind them."""
    shown: TracebackType | None = None
    is_behind = not isinstance(problem, PolyopError)
    for frame in reversed(list(_frames(problem.__traceback__))):
        is_behind = is_behind and _is_hidden(frame)
        if is_behind or not _is_hidden(frame):
            shown = TracebackType(shown, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return shown


def _is_own(problem: BaseException) -> bool:
    return all(map(_is_hidden, _frames(problem.__traceback__)))


def _frames(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _is_hidden(frame: TracebackType) -> bool:
    name = frame.tb_frame.f_globals.get("__name__") or ""
    return name.partition(".")[0] in _HIDDEN
