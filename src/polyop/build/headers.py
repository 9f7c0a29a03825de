"""Check the files that a compile has read, sources and headers, against the allowlist."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any

from ..binary.allowed import allowed_folders, lies_in, refused
from ..binary.verified import is_ours
from . import compilers
from .paths import include_folder


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
    for language in ("c", "c++", "cuda"):
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
