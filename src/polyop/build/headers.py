"""The gate of the allow list for what a compile has read: its sources and every header."""

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
    """Check what a compile has read: its sources and every header.

    Headers of the system are those of polyop, Python, PyTorch, ``/usr`` and the compilers' own folders.
    Raises as :func:`check_allowed`.
    """
    folders = allowed_folders()
    if folders is None:
        return
    good = [*map(str, folders), *_installed()]
    passed: set[str] = set()
    for path in paths:
        resolved = os.path.realpath(path)
        place = os.path.dirname(resolved)
        if place in passed or is_ours(resolved):
            continue
        if not any(lies_in(resolved, folder) for folder in good):
            raise refused(path, resolved, "header", folders)
        if any(lies_in(place, folder) for folder in good):
            passed.add(place)


def _installed() -> list[str]:
    """Return the folders whose headers are as trusted as the compiler and this Python."""
    found = ["/usr", sys.prefix, sys.base_prefix, include_folder()]
    torch = sys.modules.get("torch")
    spec = getattr(torch, "__spec__", None) or _spec("torch")
    if spec is not None and spec.origin:
        found.append(f"{os.path.dirname(spec.origin)}/include")
    for language in ("c", "c++", "cuda"):
        folder, name = os.path.split(os.path.dirname(os.path.realpath(compilers.program(language) or "/")))
        found += [folder] if name == "bin" and folder != "/" else []
    return [os.path.realpath(folder) for folder in found]


def _spec(name: str) -> Any:
    import importlib.util

    try:
        return importlib.util.find_spec(name)
    except ValueError:
        return None
