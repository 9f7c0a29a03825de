"""Where something was defined, for error messages."""

from __future__ import annotations

import inspect
import os.path
import sys
from dataclasses import dataclass
from types import FrameType
from typing import Any

PACKAGE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120 - pathlib is slow to import
"""The folder of polyop."""

_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


@dataclass(frozen=True, slots=True)
class Origin:
    """A file and a line; ``str()`` is what :func:`place` returns."""

    file: str
    line: int

    def __str__(self) -> str:
        """Return ``file:line``, or the cell of a notebook and the line in it."""
        return place(self.file, self.line)


def place(file: str, line: int | str) -> str:
    """Return ``file:line``; for a cell of IPython ``cell In[3], line 2``, as its tracebacks have it.

    IPython compiles each cell under the name of a file that does not exist, and knows the cell by that name.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    named = getattr(getattr(shell, "compile", None), "format_code_name", None)
    cell = named(file) if named is not None else None
    return f"{file}:{line}" if cell is None else f"{cell[0].lower()} {cell[1]}, line {line}"


def calling_frame() -> FrameType:
    """Return the innermost frame of the stack that is outside polyop."""
    frame = sys._getframe(1)  # noqa: SLF001 - inspect.stack() reads source files, too slow here
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return frame


def module_frame() -> FrameType | None:
    """Return the frame of the module or the cell whose own code calls polyop; None if a function of it does.

    A comprehension is part of the code around it, though before Python 3.12 it has a frame of its own.
    """
    frame: FrameType | None = calling_frame()
    while frame is not None and frame.f_code.co_name in _COMPREHENSIONS:
        frame = frame.f_back
    is_module = frame is not None and frame.f_code.co_name.startswith(("<module>", "<cell line"))
    return frame if is_module else None


def runs_again(before: FrameType | None, frame: FrameType | None) -> bool:
    """Whether the code of ``frame`` replaces what that of ``before`` defined; None is that of a function.

    A module that is reloaded and a cell that is run again have a new frame with the same globals. A second
    definition in the same frame, in a loop, is another operator, and so is one in a function.
    """
    if before is None or frame is None or before is frame:
        return False
    return before.f_globals is frame.f_globals


def caller() -> Origin:
    """Return the innermost line of the stack that is outside polyop."""
    frame = calling_frame()
    return Origin(frame.f_code.co_filename, frame.f_lineno)


def of_function(function: Any) -> Origin | None:
    """Return where a Python function is defined, or None for other callables."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return None if code is None else Origin(code.co_filename, code.co_firstlineno)
