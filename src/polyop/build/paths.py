"""The folders of polyop's headers and of the cache, and absolute paths."""

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
    """Return :func:`include_dir` as a string."""
    installed = f"{_PACKAGE}/include"
    if os.path.isfile(f"{installed}/polyop/abi.h"):
        return installed
    return f"{os.path.dirname(os.path.dirname(_PACKAGE))}/include"  # a source checkout


def include_dir() -> Path:
    """Return the folder of polyop's headers, which holds ``polyop/abi.h``.

    >>> (include_dir() / "polyop" / "abi.h").is_file()
    True
    """
    from pathlib import Path

    return Path(include_folder())


def cache_folder() -> str:
    """Return :func:`cache_dir` as a string."""
    variable = os.environ.get("POLYOP_CACHE_DIR")
    if variable:
        folder = absolute(variable)
        if os.path.exists(folder) and not os.path.isdir(folder):
            raise CacheError("POLYOP_CACHE_DIR", "must name a folder", folder)
        return folder
    parent = _xdg_cache_home() if sys.platform == "linux" and "ANDROID_ROOT" not in os.environ else ""
    if parent:
        return f"{parent.rstrip('/')}/polyop"
    import platformdirs

    return platformdirs.user_cache_dir("polyop")


def cache_dir() -> Path:
    """Return the folder of the build cache, which may not exist yet: ``$POLYOP_CACHE_DIR`` if it is set."""
    from pathlib import Path

    return Path(cache_folder())


def _xdg_cache_home() -> str:
    """Return the parent folder of caches that platformdirs would return, without importing it.

    An empty string means that platformdirs must decide, because a variable holds no absolute path.
    """
    variable = os.environ.get("XDG_CACHE_HOME", "")
    home = os.environ.get("HOME", "")
    if variable:
        return variable if variable.startswith("/") else ""
    return f"{home.rstrip('/')}/.cache" if home.startswith("/") else ""


def absolute(path: str | os.PathLike[str]) -> str:
    """Return an absolute path as ``Path.absolute`` does: without "." and "//", but with "..".

    >>> absolute("/a/./b//../c/")
    '/a/b/../c'

    Raises ``ArgumentTypeError`` for a value that is no path, and ``ArgumentValueError`` for a path that
    cannot be written in a compiler's dependency file.
    """
    text = as_path(path, "build")
    if "\n" in text or not is_text(text):
        rule = "a path must be one line of UTF-8: compilers list what they have read as lines of text"
        raise ArgumentValueError("build", rule, shown(text), hint="rename it, or make a link to it")
    parts = (text if text.startswith("/") else f"{os.getcwd()}/{text}").split("/")
    return "/" + "/".join(part for part in parts if part not in ("", "."))
