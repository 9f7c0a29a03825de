"""A note: what a pass tells the author of a line."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Note:
    """What a pass did or decided, for the author of the line. Code tests ``kind``, never the text.

    ``kind`` is the name of a pass, or "interchange", "fuse", "plan", "check" (an index that is not proved),
    "fallback", "debug". ``subject`` is the tensor of a check.
    """

    line: int
    text: str
    kind: str = ""
    subject: str = ""
