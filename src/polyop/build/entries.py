"""The cache's contents, listed and removed."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ..binary import trust
from ..core.errors import CacheError
from . import entry_locks, facts
from .manifest import Manifest
from .paths import cache_dir


@dataclass(frozen=True, slots=True)
class Entry:
    """One built file: its key, what it was built from, bytes, when it was built and last used.

    ``in_use`` tells whether a process uses it now.
    """

    key: str
    sources: tuple[str, ...]
    path: Path
    size: int
    created: float
    used: float
    in_use: bool


class Cleared(NamedTuple):
    """How many entries were removed, and how many stayed because a process uses or builds them."""

    removed: int
    kept: int


def _manifests(folder: Path) -> Iterator[tuple[Path, Manifest]]:
    for path in sorted((folder / "requests").glob("*.json")):
        with contextlib.suppress(OSError, ValueError, CacheError):
            yield path, Manifest.read(str(path), str(folder))


def entries(folder: Path | None = None) -> list[Entry]:
    """Return what the cache holds, the most recently used first."""
    folder = folder or cache_dir()
    found = []
    for _, manifest in _manifests(folder):
        for result in manifest.results:
            path = folder / "entries" / result.key / result.file
            with contextlib.suppress(OSError):
                seen = path.stat()
                used = max(result.created, seen.st_atime)
                busy = entry_locks.in_use(str(folder), result.key)
                sources = tuple(manifest.sources)
                found.append(Entry(result.key, sources, path, seen.st_size, result.created, used, busy))
    return sorted(found, key=lambda entry: -entry.used)


def clear(older_than: float | None = None) -> Cleared:
    """Remove entries, all or those not used for ``older_than`` seconds; say how many.

    What a process uses stays, and so does what one is building, with the code that it builds from.
    Raises ``CacheError`` when the folder cannot be written, or others may write there.
    """
    folder = cache_dir()
    trust.check_cache(str(folder))
    limit = None if older_than is None else time.time() - older_than
    doomed = {entry.key for entry in entries(folder) if limit is None or entry.used <= limit}
    try:
        removed = remove(folder, doomed)
        if limit is None:
            remove_leftovers(folder, time.time())
            _remove_damaged(folder)
    except OSError as problem:
        raise CacheError(
            f"build cache {folder}",
            "must be a folder that can be written",
            problem.strerror or problem,
            hint="set POLYOP_CACHE_DIR to another folder",
        ) from None
    return Cleared(removed, len(doomed) - removed)


def remove(folder: Path, doomed: Collection[str]) -> int:
    """Remove entries that nobody uses and whose request nobody builds; return how many.

    Raises ``OSError``.
    """
    from filelock import FileLock, Timeout

    count = 0
    for path, manifest in list(_manifests(folder)):
        if not any(result.key in doomed for result in manifest.results):
            continue
        lock = FileLock(folder / "locks" / path.stem, timeout=0, mode=0o644)
        with contextlib.suppress(Timeout, FileNotFoundError), lock:
            count += _remove_of(folder, path, doomed)
    return count


def _remove_of(folder: Path, path: Path, doomed: Collection[str]) -> int:
    """Remove entries of one request, whose lock we hold."""
    manifest, count = Manifest.read(str(path)), 0
    for result in list(manifest.results):
        if result.key not in doomed:
            continue
        with entry_locks.exclusive(str(folder), result.key) as free:
            if not free:
                continue
            manifest.results.remove(result)  # first: an entry without a record is swept some day
            if manifest.results:
                manifest.write(path)
            else:
                path.unlink(missing_ok=True)
            shutil.rmtree(folder / "entries" / result.key)
            count += 1
    return count


def remove_leftovers(folder: Path, before: float | None) -> None:
    """Remove entries that no manifest knows, and the code of builds before a time, unless in use."""
    known = {result.key for _, manifest in _manifests(folder) for result in manifest.results}
    for entry in (folder / "entries").glob("*"):
        if entry.name not in known:
            _remove_unused(folder, entry)
    for code in (folder / "code").glob("*"):
        with contextlib.suppress(OSError):
            if before is not None and code.stat().st_mtime < before:
                _remove_unused(folder, code)


def _remove_unused(folder: Path, path: Path) -> None:
    ours = not set(path.name) - set("0123456789abcdef")
    with (
        entry_locks.exclusive(str(folder), path.name)
        if ours
        else contextlib.nullcontext(enter_result=True) as free
    ):
        if free:
            shutil.rmtree(path, ignore_errors=True)


def _remove_damaged(folder: Path) -> None:
    whole = {path for path, _ in _manifests(folder)}
    for path in (folder / "requests").glob("*"):
        if path not in whole:
            path.unlink(missing_ok=True)
    for name in ("repairs.log", facts.FILE):
        (folder / name).unlink(missing_ok=True)
