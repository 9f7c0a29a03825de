"""Lines of C with their indentation."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


class Writer:
    """Collects lines."""

    def __init__(self, depth: int = 0) -> None:
        self.lines: list[str] = []
        self.depth = depth

    def line(self, text: str = "") -> None:
        """Append a line."""
        self.lines.append("  " * self.depth + text if text else "")

    @contextlib.contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Write ``head {``, what the block writes, and ``}``."""
        self.line(f"{head} {{" if head else "{")
        self.depth += 1
        yield
        self.depth -= 1
        self.line("}")

    def text(self) -> str:
        """Return all lines."""
        return "\n".join(self.lines) + "\n"
