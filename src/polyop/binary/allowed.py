"""The gate of the allow list: which files may become code of this process, by being opened or compiled.

polyop checks three kinds of file. Libraries and sources pass ``check_allowed``; headers that a compile has
read pass :func:`polyop.build.headers.check_headers`. Without a list every file passes. With a list a file
passes if it lies in a listed folder, or if it is one of these:

* text that polyop itself writes as a file: inline code, loop kernels' C, generated bindings. Whoever
  hands it over runs code in this process already;
* what polyop has built from all this and verified (:mod:`polyop.binary.verified`);
* headers under polyop's own include folder, ``/usr``, ``sys.prefix`` and ``sys.base_prefix``, the compilers'
  folders, and PyTorch's.

The list is no sandbox. It checks the files that polyop opens or compiles. It does not check what their code
does, nor what the loader and the linker load for it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..core.errors import ArgumentTypeError, ArgumentValueError
from ..core.limits import as_path
from . import verified

if TYPE_CHECKING:
    from pathlib import Path

# Each variable, and what separates its folders; MindSpore's names one folder.
_VARIABLES: tuple[tuple[str, str | None], ...] = (
    ("POLYOP_LIBRARY_PATHS", os.pathsep),
    ("MS_CUSTOM_AOT_WHITE_LIST", None),
)


def allowed_folders() -> tuple[Path, ...] | None:
    """Return the resolved folders that libraries may lie in, or None when any may.

    The environment is read at each call: POLYOP_LIBRARY_PATHS (a list) and
    MS_CUSTOM_AOT_WHITE_LIST (one folder) add up. Raises ``ArgumentValueError`` for a folder
    that does not exist: a misspelt folder would silently allow nothing.
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
    missing = next((text for text in kept if not Path(text).is_dir()), None)
    if missing is not None or not kept:
        what = "is no folder" if missing and Path(missing).exists() else "does not exist"
        seen = f"{missing!r}, which {what}" if missing else "no folder in it"
        hint = "create the folder, or correct the variable"
        raise ArgumentValueError(variable, f"Illegal white list path set in {variable}", seen, hint=hint)
    return [Path(os.path.realpath(text)) for text in kept]


def check_allowed(path: str | Path, kind: str = "library") -> str:
    """Return the resolved path of a library, or of another ``kind`` of file, that may become code.

    Whole resolved paths are compared: a folder allows what lies in it, links followed, and
    nothing else. What polyop wrote or built itself passes.
    Raises ``ArgumentTypeError`` for a file outside the list, ``ArgumentValueError`` for a list
    that names a folder which does not exist.
    """
    resolved = os.path.realpath(as_path(path, kind))
    if verified.is_ours(resolved):
        return resolved
    folders = allowed_folders()
    if folders is None or any(lies_in(resolved, str(folder)) for folder in folders):
        return resolved
    raise refused(path, resolved, kind, folders)


def refused(path: str | Path, resolved: str, kind: str, folders: Sequence[Path]) -> ArgumentTypeError:
    """Return the error for a file outside the list."""
    names = " or ".join(variable for variable, _ in _VARIABLES if os.environ.get(variable))
    rule = f"the legal path for the file is {', '.join(map(str, folders))}, but the file is {resolved}"
    hint = f"the allow-list is {names}: add the folder to it, or move the {kind}"
    return ArgumentTypeError(f"{kind} {path}", rule, hint=hint)


def lies_in(path: str, folder: str) -> bool:
    """Whether a resolved path is in a resolved folder, at any depth."""
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
