"""The allowlist: which files may become code of this process, by being opened or compiled.

polyop checks three kinds of file. Libraries and sources pass ``check_allowed``; headers that a compile has
read pass :func:`polyop.build.depfile.check_headers`. Without a list every file passes. With a list a file
passes if it lies in a listed folder, or if it is one of these:

* a file that polyop itself wrote: inline code, the C of loop kernels, generated bindings. The author of such
  code runs code in this process already;
* a library that polyop has built from allowed files and verified (:mod:`polyop.binary.verified`);
* headers under polyop's own include folder, ``/usr``, ``sys.prefix`` and ``sys.base_prefix``, the compilers'
  folders, and PyTorch's.

The list is no sandbox. It covers the files that polyop opens or compiles. It does not cover what their code
does, nor the files that the loader and the linker load for them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..core.errors import ArgumentTypeError, ArgumentValueError, BuildError
from ..core.limits import as_path
from . import verified

if TYPE_CHECKING:
    from pathlib import Path

# Each variable, and the separator of its folders; MindSpore's variable names one folder.
_VARIABLES: tuple[tuple[str, str | None], ...] = (
    ("POLYOP_LIBRARY_PATHS", os.pathsep),
    ("MS_CUSTOM_AOT_WHITE_LIST", None),
)


def allowed_folders() -> tuple[Path, ...] | None:
    """Return the resolved folders that libraries may lie in, or None if there is no list.

    The list is read from the environment at each call: the folders of POLYOP_LIBRARY_PATHS and the one of
    MS_CUSTOM_AOT_WHITE_LIST. Raises ``ArgumentValueError`` for a folder that does not exist, because a
    misspelt folder would silently allow nothing.
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

    paths = [text for text in texts if text.strip()]
    wrong = next((path for path in paths if not Path(path).is_dir()), None)
    if wrong is not None or not paths:
        reason = "is no folder" if wrong and Path(wrong).exists() else "does not exist"
        seen = f"{wrong!r}, which {reason}" if wrong else "no folder in it"
        hint = "create the folder, or correct the variable"
        raise ArgumentValueError(variable, "a folder of the allowlist must exist", seen, hint=hint)
    return [Path(os.path.realpath(path)) for path in paths]


def check_allowed(path: str | Path, kind: str = "library") -> str:
    """Return the resolved path of a file that may become code; ``kind`` names it in errors.

    Resolved paths are compared, so a link does not lead out of a listed folder. Files that polyop wrote or
    built itself are allowed.
    Raises ``ArgumentTypeError`` for a file outside the list, ``ArgumentValueError`` if the list names a
    folder that does not exist, and ``LibraryError`` or ``BuildError`` for what is no plain file: to open a
    pipe waits for ever.
    """
    resolved = os.path.realpath(as_path(path, kind))
    if verified.is_ours(resolved):
        return resolved
    folders = allowed_folders()
    if folders is not None and not any(lies_in(resolved, str(folder)) for folder in folders):
        raise refused(path, resolved, kind, folders)
    _check_plain(path, resolved, kind)
    return resolved


def _check_plain(path: str | Path, resolved: str, kind: str) -> None:
    """Raise an error for a folder, pipe, device or socket; a file that is missing gets a better one later."""
    try:
        mode = os.stat(resolved).st_mode
    except (OSError, ValueError):
        return
    if stat.S_ISREG(mode):
        return
    if kind == "library":
        from .file_kind import file_problem

        problem = file_problem(path)
        if problem is not None:
            raise problem
    if not stat.S_ISDIR(mode):  # to read a folder is an error by itself
        raise BuildError(f"{kind} {path}", "must be a plain file", "a device, pipe or socket")


def refused(path: str | Path, resolved: str, kind: str, folders: Sequence[Path]) -> ArgumentTypeError:
    """Return the error for a file outside the list."""
    names = " or ".join(variable for variable, _ in _VARIABLES if os.environ.get(variable))
    rule = f"the legal path for the file is {', '.join(map(str, folders))}, but the file is {resolved}"
    hint = f"the allowlist is {names}: add the folder to it, or move the {kind}"
    return ArgumentTypeError(f"{kind} {path}", rule, hint=hint)


def lies_in(path: str, folder: str) -> bool:
    """Whether a resolved path lies in a resolved folder, at any depth."""
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
