"""Find the files that a compile has read, in the dependency file that compilers write for make.

``would_shadow`` adds the paths where a new file would be found before a header that was read. The cache
records them as absent, so that a new file there leads to a new build too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

_PIECE = re.compile(r"\\+|[^\\ \t\n]+|[ \t\n]")
"""A run of backslashes, a run of other characters of a name, or one blank."""


def parse_depfile(text: str) -> list[str]:
    r"""Return the prerequisites of the make rule in a dependency file.

    >>> parse_depfile("t: /a\\ b/k.c \\\n /usr/include/x.h\n")
    ['/a b/k.c', '/usr/include/x.h']
    >>> parse_depfile("t: /a\\b.c /n\\#1.h /c\rd.h\n")
    ['/a\\b.c', '/n#1.h', '/c\rd.h']

    A blank after an odd number of backslashes belongs to the name. Other backslashes are plain characters.

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
            names.append(_unescape("".join(parts)))
            parts = []
    return [*names, *([_unescape("".join(parts))] if parts else [])]


def _unescape(name: str) -> str:
    return name.replace("\\#", "#").replace("$$", "$")


def would_shadow(inputs: Iterable[str], search: Sequence[str]) -> list[str]:
    """Return the paths that do not exist and that the compiler would read instead of an input if they did.

    ``search`` are the folders passed with -I, in order. If a whole folder is missing, the folder itself is
    returned for all files that could be in it.
    """
    roots = [root.rstrip("/") + "/" for root in dict.fromkeys(search)]
    is_missing: dict[str, bool] = {}

    def absent(path: str) -> bool:
        if path not in is_missing:
            is_missing[path] = not os.path.lexists(path)
        return is_missing[path]

    for path in inputs:
        position = next((i for i, root in enumerate(roots) if path.startswith(root)), len(roots))
        if position < len(roots):
            name = path[len(roots[position]) :]
        else:  # a folder of the compiler's own: the source named the part behind the last "include"
            name = path.rpartition("/include/")[2] if "/include/" in path else path.rpartition("/")[2]
        for root in roots[:position]:
            if not absent(root + name.partition("/")[0]):
                absent(root + name)
    return [path for path, missing in is_missing.items() if missing]
