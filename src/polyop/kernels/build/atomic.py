"""Files that are either whole or absent, whoever else writes them and whenever one is killed."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")


def write_text(path: Path, text: str) -> None:
    """Write ``text`` to ``path``: readers see the old file or the new one. Raises ``OSError``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = _beside(path)
    try:
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise


def copy(source: Path, target: Path) -> None:
    """Copy a file to ``target`` in one step; a process that has the old one open keeps it."""
    fresh = _beside(target)
    try:
        shutil.copy(source, fresh)
        fresh.replace(target)
    except OSError:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise
