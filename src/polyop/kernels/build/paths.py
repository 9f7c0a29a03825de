"""The folders a build uses: polyop's headers, and the cache."""

from __future__ import annotations

import os
from pathlib import Path

from ...core.errors import CacheError

_PACKAGE = Path(__file__).resolve().parents[2]


def include_dir() -> Path:
    """Return the folder that holds ``polyop/abi.h`` and the headers beside it.

    >>> (include_dir() / "polyop" / "abi.h").is_file()
    True
    """
    installed = _PACKAGE / "include"
    if (installed / "polyop" / "abi.h").is_file():
        return installed
    return _PACKAGE.parents[1] / "include"  # a source checkout


def cache_dir() -> Path:
    """Return the cache's folder: ``$POLYOP_CACHE_DIR``, else the user's own; it may not exist yet."""
    given = os.environ.get("POLYOP_CACHE_DIR")
    if given:
        folder = Path(given).absolute()
        if folder.exists() and not folder.is_dir():
            raise CacheError("POLYOP_CACHE_DIR", "must name a folder", str(folder))
        return folder
    import platformdirs

    return Path(platformdirs.user_cache_dir("polyop"))
