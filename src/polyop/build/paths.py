"""The folders a build uses: polyop's headers, and the cache."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from ..core.errors import ArgumentValueError, CacheError
from ..core.limits import as_path, is_text, shown

if TYPE_CHECKING:
    from pathlib import Path

_PACKAGE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


def include_folder() -> str:
    """Return :func:`include_dir` as text."""
    installed = f"{_PACKAGE}/include"
    if os.path.isfile(f"{installed}/polyop/abi.h"):
        return installed
    return f"{os.path.dirname(os.path.dirname(_PACKAGE))}/include"  # a source checkout


def include_dir() -> Path:
    """Return the folder that holds ``polyop/abi.h`` and the headers beside it.

    >>> (include_dir() / "polyop" / "abi.h").is_file()
    True
    """
    from pathlib import Path

    return Path(include_folder())


def cache_folder() -> str:
    """Return :func:`cache_dir` as text."""
    given = os.environ.get("POLYOP_CACHE_DIR")
    if given:
        folder = absolute(given)
        if os.path.exists(folder) and not os.path.isdir(folder):
            raise CacheError("POLYOP_CACHE_DIR", "must name a folder", folder)
        return folder
    parent = _plain_parent() if sys.platform == "linux" and "ANDROID_ROOT" not in os.environ else ""
    if parent:
        return f"{parent.rstrip('/')}/polyop"
    import platformdirs

    return platformdirs.user_cache_dir("polyop")


def cache_dir() -> Path:
    """Return the cache's folder: ``$POLYOP_CACHE_DIR``, else the user's own; it may not exist yet."""
    from pathlib import Path

    return Path(cache_folder())


def _plain_parent() -> str:
    """Return where platformdirs puts caches when nothing is odd about the environment, else ""."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    home = os.environ.get("HOME", "")
    if named:
        return named if named.startswith("/") else ""
    return f"{home.rstrip('/')}/.cache" if home.startswith("/") else ""


def absolute(path: str | os.PathLike[str]) -> str:
    """Return a path from the root as ``Path.absolute`` does: without "." and "//", and ".." left in place.

    >>> absolute("/a/./b//../c/")
    '/a/b/../c'

    Raises ``ArgumentTypeError`` for what is no path, and ``ArgumentValueError`` for a path that compilers
    cannot name in what they write.
    """
    text = as_path(path, "build")
    if "\n" in text or not is_text(text):
        rule = "a path must be one line of UTF-8: compilers list what they have read as lines of text"
        raise ArgumentValueError("build", rule, shown(text), hint="rename it, or make a link to it")
    parts = (text if text.startswith("/") else f"{os.getcwd()}/{text}").split("/")
    return "/" + "/".join(part for part in parts if part not in ("", "."))
