"""Where something was defined, for error messages."""

from __future__ import annotations

import inspect
import os.path
import sys
from dataclasses import dataclass
from types import FrameType
from typing import Any

_PACKAGE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120 - pathlib is slow to import


@dataclass(frozen=True, slots=True)
class Origin:
    """A file and a line; ``str()`` is ``file:line``."""

    file: str
    line: int

    def __str__(self) -> str:
        """Return ``file:line``."""
        return f"{self.file}:{self.line}"


def calling_frame() -> FrameType:
    """Return the innermost frame of the stack that is outside polyop."""
    frame = sys._getframe(1)  # noqa: SLF001 - inspect.stack() reads source files, too slow here
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return frame


def caller() -> Origin:
    """Return the innermost line of the stack that is outside polyop."""
    frame = calling_frame()
    return Origin(frame.f_code.co_filename, frame.f_lineno)


def of_function(function: Any) -> Origin | None:
    """Return where a Python function is defined, or None for other callables."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return None if code is None else Origin(code.co_filename, code.co_firstlineno)
