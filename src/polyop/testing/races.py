"""Find races and invalid accesses of loop kernels on a device of OpenCL, and name the author's lines.

oclgrind, a simulator of such devices, finds them in the text that the device compiles. Each statement of that
text stands below a comment with the author's line.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

COMMAND = ("oclgrind", "--data-races", "--max-errors", "100")

_PLACE = re.compile(r"At line (\d+) \(column \d+\) of ([^\n]*):\n\s*([^\n]*)")
_TITLE = re.compile(r"/\* \S+ the loop kernel \w+ of (\S+), for OpenCL: the device \*/")
_AUTHOR = re.compile(r"/\* (\d+): (.*) \*/")
_ADDRESS = re.compile(r" (?:at|from|to) (\w+) memory address 0x\w+")


class Finding(NamedTuple):
    """What a simulator found, and the places of it: of a race two."""

    what: str
    places: tuple[str, ...]

    def __str__(self) -> str:
        """Return both, a place on each line."""
        return "\n".join([self.what, *(f"    {place}" for place in self.places)])


def findings(log: str, texts: Sequence[str]) -> list[Finding]:
    r"""Return what a log of oclgrind says of the texts, each finding once.

    >>> title = "/* f: the loop kernel k of k.py, for OpenCL: the device */"
    >>> place = "At line 3 (column 1) of input.cl:\n\t  y[i] = 1.0f;"
    >>> log = f"Invalid write of size 4 at global memory address 0x1\n\t{place}"
    >>> print(*findings(log, [f"{title}\n/* 7: y[i] = 1.0 */\ny[i] = 1.0f;"]))
    Invalid write of size 4 in global memory
        k.py:7: y[i] = 1.0
    """
    found: dict[Finding, None] = {}
    for message in filter(None, re.split(r"\n(?=\S)", log.strip())):  # what belongs to a message is indented
        found_in = _PLACE.findall(message)
        places = [_author(texts, int(line), file, shown.strip()) for line, file, shown in found_in]
        what = _ADDRESS.sub(r" in \1 memory", message.partition("\n")[0])
        found[Finding(what, tuple(dict.fromkeys(places)))] = None
    return list(found)


def _author(texts: Sequence[str], line: int, file: str, shown: str) -> str:
    """Return the place of the author's line above a line of a text; that line itself where none is known.

    A text in OpenCL C has the name of its file, which is the author's.
    """
    if Path(file).is_file():
        return f"{Path(file).name}:{line}: {linecache.getline(file, line).strip()}"
    for text in texts:
        lines = text.splitlines()
        if line <= len(lines) and lines[line - 1].strip() == shown:
            above = lines[:line]
            title = next(filter(None, map(_TITLE.match, reversed(above))), None)
            author = next(filter(None, map(_AUTHOR.match, map(str.strip, reversed(above)))), None)
            if title and author:
                return f"{title[1]}:{author[1]}: {author[2]}"
    return f"line {line}: {shown}"
