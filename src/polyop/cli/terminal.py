"""Print what the verbs say, with control characters escaped: names come out of files of others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TextIO

from ..core.errors import one_line, printable

if TYPE_CHECKING:
    from rich.text import Text


def say(text: object = "", *, file: TextIO | None = None, end: str = "\n", flush: bool = False) -> None:
    """Print a text, which may have several lines, with what is no character of a text escaped."""
    print(printable(str(text)), file=file, end=end, flush=flush)


def fact(label: str, text: str) -> None:
    """Print a label and what it says, which stays one line whatever names are in it."""
    say(one_line(f"{label + ':':<13} {text}"))


def say_json(value: object) -> None:
    """Print a value as JSON, which escapes what is in its texts."""
    print(json.dumps(value, indent=2).replace("\x7f", "\\u007f"))


def styled(text: object, style: str = "") -> Text:
    """Return a text for a table of rich, escaped as :func:`say` does."""
    from rich.text import Text

    return Text(printable(str(text)), style=style)
