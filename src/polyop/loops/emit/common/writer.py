"""Lines of C with their indentation."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator, Mapping
from contextvars import ContextVar

_printers: ContextVar[dict[str, str] | None] = ContextVar("printers", default=None)


class Writer:
    """Collects lines."""

    def __init__(self, depth: int = 0) -> None:
        self.lines: list[str] = []
        self.depth = depth

    def line(self, text: str = "") -> None:
        """Append a line."""
        self.lines.append("  " * self.depth + text if text else "")
        if (printers := _printers.get()) is not None:
            printers.setdefault(text.strip(), _caller())

    @contextlib.contextmanager
    def block(self, head: str, *, end: str = "") -> Iterator[None]:
        """Write ``head {``, what the block writes, and ``}`` with an ``end``."""
        self.line(f"{head} {{" if head else "{")
        self.depth += 1
        yield
        self.depth -= 1
        self.line("}" + end)

    def text(self) -> str:
        """Return all lines."""
        return "\n".join(self.lines) + "\n"


@contextlib.contextmanager
def recorded_printers() -> Iterator[Mapping[str, str]]:
    """Context that records who prints each line: the file and the line of the printer, by what is printed."""
    found: dict[str, str] = {}
    token = _printers.set(found)
    try:
        yield found
    finally:
        _printers.reset(token)


def _caller() -> str:
    """Return the place outside of this file and of contextlib that prints a line."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename in (__file__, contextlib.__file__):
        frame = frame.f_back
    if frame is None:
        return "nothing"
    file = frame.f_code.co_filename.replace("\\", "/").rpartition("/emit/")[2]
    return f"emit/{file}:{frame.f_lineno} ({frame.f_code.co_name})"
