"""The cache's contents, listed and cleared."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...core.errors import CacheError
from . import facts
from .manifest import Manifest
from .paths import cache_dir

_YOUNG = 60.0


@dataclass(frozen=True, slots=True)
class Entry:
    """One built file: its key, what it was built from, bytes, and when it was built and last used."""

    key: str
    sources: tuple[str, ...]
    path: Path
    size: int
    created: float
    used: float


def _manifests(folder: Path) -> Iterator[tuple[Path, Manifest]]:
    for path in sorted((folder / "requests").glob("*.json")):
        with contextlib.suppress(OSError, ValueError):
            yield path, Manifest.read(path)


def entries() -> list[Entry]:
    """Return what the cache holds, the most recently used first."""
    folder = cache_dir()
    found = []
    for _, manifest in _manifests(folder):
        for variant in manifest.variants:
            path = folder / "entries" / variant.key / variant.file
            with contextlib.suppress(OSError):
                seen = path.stat()
                used = max(variant.created, seen.st_atime)
                found.append(
                    Entry(variant.key, tuple(manifest.sources), path, seen.st_size, variant.created, used)
                )
    return sorted(found, key=lambda entry: -entry.used)


def clear(older_than: float | None = None) -> int:
    """Remove entries and return how many: all, or those not used for ``older_than`` seconds.

    Programs that have a removed library open keep it. A build in progress is not disturbed.
    Raises ``CacheError`` when the folder cannot be written.
    """
    folder = cache_dir()
    limit = None if older_than is None else time.time() - older_than
    doomed = {entry.key for entry in entries() if limit is None or entry.used <= limit}
    try:
        for path, manifest in list(_manifests(folder)):
            kept = [variant for variant in manifest.variants if variant.key not in doomed]
            if not kept:
                path.unlink(missing_ok=True)
            elif len(kept) < len(manifest.variants):
                manifest.variants = kept
                manifest.write(path)
        for key in doomed:
            shutil.rmtree(folder / "entries" / key)
    except OSError as problem:
        raise CacheError(
            f"build cache {folder}",
            "must be a folder that can be written",
            problem.strerror or problem,
            hint="set POLYOP_CACHE_DIR to another folder",
        ) from None
    if limit is None:
        _remove_leftovers(folder)
    return len(doomed)


def _remove_leftovers(folder: Path) -> None:
    """Remove damaged manifests, entries no manifest knows, and inline sources."""
    known = {variant.key for _, manifest in _manifests(folder) for variant in manifest.variants}
    for entry in (folder / "entries").glob("*"):
        with contextlib.suppress(OSError):  # a young one may be about to get its manifest
            if entry.name not in known and time.time() - entry.stat().st_mtime > _YOUNG:
                shutil.rmtree(entry)
    whole = {path for path, _ in _manifests(folder)}
    for path in (folder / "requests").glob("*"):
        if path not in whole:
            path.unlink(missing_ok=True)
    shutil.rmtree(folder / "code", ignore_errors=True)
    for name in ("repairs.log", facts.FILE):
        (folder / name).unlink(missing_ok=True)
