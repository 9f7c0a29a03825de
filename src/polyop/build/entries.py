"""List and remove the entries of the build cache."""

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
from .manifest import Kind, Manifest, kind_of
from .paths import cache_dir

AGES_CHECKED = "ages-checked"
"""The file whose time tells when the ages of all entries were last checked."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One built file: its key, the names of its sources, its path, and its size in bytes.

    ``created`` and ``used`` are the times of its build and of its last use, in seconds since the epoch.
    ``in_use`` says whether a process uses it now.
    """

    key: str
    sources: tuple[str, ...]
    path: Path
    size: int
    created: float
    used: float
    in_use: bool

    @property
    def kind(self) -> Kind:
        """Whether it is a library, an object of one, or another file."""
        return kind_of(self.path.name)


class Cleared(NamedTuple):
    """How many entries were removed, and how many were kept because a process uses or builds them."""

    removed: int
    kept: int


def _manifests(folder: Path, *, whole: bool = False) -> Iterator[tuple[Path, Manifest]]:
    for path in sorted((folder / "requests").glob("*.json")):
        with contextlib.suppress(OSError, ValueError, CacheError):
            yield path, Manifest.read(str(path), str(folder), whole=whole)


def entries(folder: Path | None = None) -> list[Entry]:
    """Return the entries of the cache, most recently used first."""
    folder = folder or cache_dir()
    rows = []
    for _, manifest in _manifests(folder):
        for result in manifest.results:
            path = folder / "entries" / result.key / result.file
            with contextlib.suppress(OSError):
                status = path.stat()
                used = max(result.created, status.st_atime)
                in_use = entry_locks.in_use(str(folder), result.key)
                sources = tuple(manifest.sources)
                rows.append(Entry(result.key, sources, path, status.st_size, result.created, used, in_use))
    return sorted(rows, key=lambda entry: -entry.used)


def clear(older_than: float | None = None) -> Cleared:
    """Remove all entries, or those not used for ``older_than`` seconds; return how many.

    An entry that a process uses or builds is kept, and so is the source code of a build in progress.
    Raises ``CacheError`` if the folder cannot be written, or if other users may write there.
    """
    folder = cache_dir()
    trust.check_cache(str(folder))
    oldest_use = None if older_than is None else time.time() - older_than
    keys = {entry.key for entry in entries(folder) if oldest_use is None or entry.used <= oldest_use}
    try:
        removed = remove(folder, keys)
        if oldest_use is None:
            _remove_damaged(folder)
            remove_leftovers(folder, time.time())
    except OSError as problem:
        raise CacheError(
            f"build cache {folder}",
            "must be a folder that can be written",
            problem.strerror or problem,
            hint="set POLYOP_CACHE_DIR to another folder",
        ) from None
    return Cleared(removed, len(keys) - removed)


def remove(folder: Path, keys: Collection[str]) -> int:
    """Remove the entries with these keys, except those that a process uses or builds; return how many.

    Raises ``OSError``.
    """
    from filelock import FileLock, Timeout

    count = 0
    for path, manifest in list(_manifests(folder)):
        if not any(result.key in keys for result in manifest.results):
            continue
        lock = FileLock(folder / "locks" / path.stem, timeout=0, mode=0o644)
        with contextlib.suppress(Timeout, FileNotFoundError), lock:
            count += _remove_of_request(folder, path, keys)
    return count


def _remove_of_request(folder: Path, path: Path, keys: Collection[str]) -> int:
    """Remove entries of the request with the manifest ``path``. The caller holds the request's lock."""
    try:
        manifest, count = Manifest.read(str(path)), 0
    except ValueError:  # its inputs are damaged: its entries are leftovers
        path.unlink(missing_ok=True)
        return 0
    for result in list(manifest.results):
        if result.key not in keys:
            continue
        with entry_locks.exclusive(str(folder), result.key) as locked:
            if not locked:
                continue
            # the record goes first: if we are killed now, remove_leftovers finds an entry without a record
            manifest.results.remove(result)
            if manifest.results:
                manifest.write(path)
            else:
                path.unlink(missing_ok=True)
            shutil.rmtree(folder / "entries" / result.key)
            count += 1
    return count


def remove_leftovers(folder: Path, before: float | None) -> None:
    """Remove entries without a record, and source code written before the time ``before``, unless in use."""
    recorded = {result.key for _, manifest in _manifests(folder) for result in manifest.results}
    for entry in (folder / "entries").glob("*"):
        if entry.name not in recorded:
            _remove_unused(folder, entry)
    for code in (folder / "code").glob("*"):
        with contextlib.suppress(OSError):
            if before is not None and code.stat().st_mtime < before:
                _remove_unused(folder, code)


def _remove_unused(folder: Path, path: Path) -> None:
    is_key = not set(path.name) - set("0123456789abcdef")  # a folder with another name is never in use
    lock = entry_locks.exclusive(str(folder), path.name) if is_key else contextlib.nullcontext(True)
    with lock as locked:
        if locked:
            shutil.rmtree(path, ignore_errors=True)


def _remove_damaged(folder: Path) -> None:
    readable = {path for path, _ in _manifests(folder, whole=True)}
    for path in (folder / "requests").glob("*"):
        if path not in readable:
            path.unlink(missing_ok=True)
    for name in ("repairs.log", facts.FILE, AGES_CHECKED):
        (folder / name).unlink(missing_ok=True)
