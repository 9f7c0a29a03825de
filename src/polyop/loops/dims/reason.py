"""Why a dimension has to be whole."""

from __future__ import annotations


class NotSliced(Exception):  # noqa: N818 - no error: it ends the proof of one dimension
    """A dimension has to be whole, because of what ``line`` does. Line 0: no line in particular."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line, self.text = line, text
