"""The allow-list of library folders: which files may be opened as code."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..core.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from pathlib import Path

# Variable, and what separates the folders in it; upstream's holds one.
_VARIABLES: tuple[tuple[str, str | None], ...] = (
    ("POLYOP_LIBRARY_PATHS", os.pathsep),
    ("MS_CUSTOM_AOT_WHITE_LIST", None),
)


def allowed_folders() -> tuple[Path, ...] | None:
    """Return the resolved folders that libraries may lie in, or None when any may.

    The environment is read at each call: POLYOP_LIBRARY_PATHS (a list) and
    MS_CUSTOM_AOT_WHITE_LIST (one folder) add up. Raises ``ArgumentValueError`` for a folder
    that does not exist: a list with a slip in it must not pass for one that allows nothing.
    """
    folders: list[Path] = []
    listed = False
    for variable, separator in _VARIABLES:
        value = os.environ.get(variable, "")
        if not value:
            continue
        listed = True
        folders += _folders(variable, value.split(separator) if separator else [value])
    return tuple(folders) if listed else None


def _folders(variable: str, texts: Sequence[str]) -> list[Path]:
    from pathlib import Path

    kept = [text for text in texts if text.strip()]
    illegal = next((text for text in kept if not Path(text).exists()), None)
    if illegal is not None or not kept:
        seen = f"{illegal!r}, which does not exist" if illegal else "no folder in it"
        hint = "create the folder, or correct the variable"
        raise ArgumentValueError(variable, f"Illegal white list path set in {variable}", seen, hint=hint)
    return [Path(os.path.realpath(text)) for text in kept]


def check_allowed(path: str | Path, also: Sequence[Path] = ()) -> str:
    """Return the resolved path of a library that may be opened.

    Whole resolved paths are compared: a folder allows what lies in it, links followed, and
    nothing else. ``also`` are folders that are allowed whatever the environment says.
    Raises ``ArgumentTypeError`` for a file outside the list, ``ArgumentValueError`` for a list
    that names a folder which does not exist.
    """
    resolved = os.path.realpath(path)
    if any(_lies_in(resolved, os.path.realpath(folder)) for folder in also):
        return resolved
    folders = allowed_folders()
    if folders is None or any(_lies_in(resolved, str(folder)) for folder in folders):
        return resolved
    names = " or ".join(variable for variable, _ in _VARIABLES if os.environ.get(variable))
    rule = f"the legal path for the file is {', '.join(map(str, folders))}, but the file is {resolved}"
    hint = f"the allow-list is {names}: add the folder to it, or move the library"
    raise ArgumentTypeError(f"library {path}", rule, hint=hint)


def _lies_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
