"""What a compile has read, from the rule that compilers write for make, and what would change that.

A path that would be found earlier by the compiler than a header it did read is recorded as
absent: a new file there makes another build, too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

_PIECE = re.compile(r"\\+|[^\\ \t\n]+|[ \t\n]")
"""A run of backslashes, other characters of a name, or one blank."""


def parse_depfile(text: str) -> list[str]:
    r"""Return the prerequisites of a make rule as compilers write it.

    >>> parse_depfile("t: /a\\ b/k.c \\\n /usr/include/x.h\n")
    ['/a b/k.c', '/usr/include/x.h']
    >>> parse_depfile("t: /a\\b.c /n\\#1.h /c\rd.h\n")
    ['/a\\b.c', '/n#1.h', '/c\rd.h']

    A blank belongs to a name behind an odd number of backslashes; other backslashes stand for themselves.

    >>> parse_depfile("t: /a\\\\ /b\\\\\\ c")
    ['/a\\\\', '/b\\ c']
    """
    _, _, rest = text.replace("\\\n", " ").partition(":")
    names: list[str] = []
    parts: list[str] = []
    for piece in _PIECE.findall(rest):
        run = len(parts[-1]) if parts and parts[-1][0] == "\\" else 0
        if piece in " \t" and run % 2:  # the last backslash escapes the blank, the others each other
            parts[-1:] = ["\\" * (run // 2) + piece] if run == 1 else ["\\" * (run // 2), piece]
        elif piece not in " \t\n":
            parts.append(piece)
        elif parts:
            names.append(_plain("".join(parts)))
            parts = []
    return [*names, *([_plain("".join(parts))] if parts else [])]


def _plain(name: str) -> str:
    return name.replace("\\#", "#").replace("$$", "$")


def would_shadow(inputs: Iterable[str], search: Sequence[str]) -> list[str]:
    """Return the paths that do not exist and, if they did, would be found instead of an input.

    ``search`` holds the folders given with -I, in order. Where a whole folder is missing, the
    folder stands for all that could be in it.
    """
    roots = [root.rstrip("/") + "/" for root in dict.fromkeys(search)]
    missing: dict[str, bool] = {}

    def absent(path: str) -> bool:
        if path not in missing:
            missing[path] = not os.path.lexists(path)
        return missing[path]

    for path in inputs:
        position = next((i for i, root in enumerate(roots) if path.startswith(root)), len(roots))
        if position < len(roots):
            name = path[len(roots[position]) :]
        else:  # a folder of the compiler's own: what stands below the last "include" was asked for
            name = path.rpartition("/include/")[2] if "/include/" in path else path.rpartition("/")[2]
        for root in roots[:position]:
            if not absent(root + name.partition("/")[0]):
                absent(root + name)
    return [path for path, is_missing in missing.items() if is_missing]
