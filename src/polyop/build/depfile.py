"""Find the files that a compile has read, in its dependency file, and check them against the allowlist.

``would_shadow`` adds the paths where a new file would be found before a header that was read. The cache
records them as absent, so that a new file there leads to a new build too.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from ..binary.allowed import allowed_folders, lies_in, refused
from ..binary.verified import is_ours
from . import compilers
from .paths import include_folder

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


def check_headers(paths: Iterable[str]) -> None:
    """Check that every file which a compile has read is allowed.

    Besides the listed folders, headers may lie in those of polyop, Python, PyTorch and the compilers, and in
    ``/usr``. Raises what :func:`polyop.binary.allowed.check_allowed` raises.
    """
    folders = allowed_folders()
    if folders is None:
        return
    allowed = [*map(str, folders), *_installed_folders()]
    checked: set[str] = set()
    for path in paths:
        resolved = os.path.realpath(path)
        parent = os.path.dirname(resolved)
        if parent in checked or is_ours(resolved):
            continue
        if not any(lies_in(resolved, folder) for folder in allowed):
            raise refused(path, resolved, "header", folders)
        if any(lies_in(parent, folder) for folder in allowed):
            checked.add(parent)


def _installed_folders() -> list[str]:
    """Return the folders whose headers are trusted as much as the compiler and this Python."""
    folders = ["/usr", sys.prefix, sys.base_prefix, include_folder()]
    torch = sys.modules.get("torch")
    spec = getattr(torch, "__spec__", None) or _spec("torch")
    if spec is not None and spec.origin:
        folders.append(f"{os.path.dirname(spec.origin)}/include")
    for language in ("c", "c++", "cuda", "hip"):
        program = os.path.realpath(compilers.program_path(language) or "/")
        folder, name = os.path.split(os.path.dirname(program))
        folders += [folder] if name == "bin" and folder != "/" else []
    return [os.path.realpath(folder) for folder in folders]


def _spec(name: str) -> Any:
    import importlib.util

    try:
        return importlib.util.find_spec(name)
    except ValueError:  # a module of this name that has no spec
        return None
