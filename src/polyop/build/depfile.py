"""What a compile has read, from the rule that compilers write for make, and what would change that.

A path that would be found earlier by the compiler than a header it did read is recorded as
absent: a new file there makes another build, too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

_WORD = r"(?:(?:\\\\)*\\[ \t]|[^ \t\n])+"
"""Blanks belong to a name behind an odd number of backslashes; other backslashes stand for themselves."""


def parse_depfile(text: str) -> list[str]:
    r"""Return the prerequisites of a make rule as compilers write it.

    >>> parse_depfile("t: /a\\ b/k.c \\\n /usr/include/x.h\n")
    ['/a b/k.c', '/usr/include/x.h']
    >>> parse_depfile("t: /a\\b.c /n\\#1.h /c\rd.h\n")
    ['/a\\b.c', '/n#1.h', '/c\rd.h']
    """
    _, _, rest = text.replace("\\\n", " ").partition(":")
    return [_name(word) for word in re.findall(_WORD, rest)]


def _name(word: str) -> str:
    plain = re.sub(r"(\\*)\\([ \t])", lambda found: found[1][::2] + found[2], word)
    return plain.replace("\\#", "#").replace("$$", "$")


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
