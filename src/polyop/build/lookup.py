"""Look up results in the build cache. If all its kernels are built, a process needs nothing else here.

This module, and all that ``compile`` imports before the look-up, must import quickly, because every
process pays for it. So paths are strings (importing pathlib alone takes as long as the rest), records are
named tuples and plain classes (a dataclass compiles its methods when it is defined), and hashing is
``hashes``. ``make`` and ``cache`` build what is missing.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from ..binary import trust, verified
from ..binary.hashes import text_digest
from ..core.log import listener
from . import entry_locks
from .depfile import check_headers
from .manifest import BuildResult, Kind, Manifest
from .paths import cache_folder


class CachedFile(NamedTuple):
    """The path of a result in the cache, and its record."""

    path: str
    result: BuildResult


def identity_of(request: Any) -> str:
    """Return the name under which the cache stores a request, which is any JSON value."""
    return text_digest(json.dumps(request, sort_keys=True))[:40]


def manifest_path(folder: str, identity: str) -> str:
    """Return the path of the manifest of a request."""
    return f"{folder}/requests/{identity}.json"


def cached_path(request: Any) -> str | None:
    """Return the path of the result for a request, or None if the user's cache has no valid one."""
    cached = look_up(cache_folder(), identity_of(request))
    return None if cached is None else cached.path


def look_up(
    folder: str,
    identity: str,
    log: Callable[[str], None] = lambda text: None,
    *,
    kind: Kind = "library",
    users: entry_locks.Users | None = None,
) -> CachedFile | None:
    """Return the valid result for a request in the cache, or None; report damage to ``log``.

    A library is hashed, and its file stays open for the call that loads it (:mod:`polyop.binary.verified`).
    An object is hashed, too. Any other file was hashed when it was built; here only its size and
    modification time are compared. The entry is in use until this process ends, or until ``users`` is
    released.
    Raises ``CacheError`` if other users may change files of the cache.
    """
    real = trust.check_cache(folder)
    path = manifest_path(folder, identity)
    try:
        trust.check_folders(folder, (f"{folder}/requests",))
        manifest = Manifest.read(path, folder)
    except OSError:
        return None
    except ValueError as problem:
        log(f"manifest {identity}: {problem}")
        return None
    for position, old in enumerate(manifest.results):
        result = old.current()
        if result is None:
            continue
        check_headers(item.path for item in result.inputs)
        file = f"{folder}/entries/{result.key}/{result.file}"
        if users is None:
            entry_locks.hold(folder, result.key)
        else:
            users.hold(result.key)
        if not _is_whole(folder, real + file[len(folder) :], result, kind):
            log(f"entry {result.key}: {result.file} is missing or damaged")
            return None
        with contextlib.suppress(OSError):  # the cache may be read-only
            if result is not old:
                manifest.results[position] = result
                manifest.write(path)
            os.utime(file, ns=(time.time_ns(), os.stat(file).st_mtime_ns))
        if detail := listener("build", detail=True):
            detail.debug("found %s in the cache: %s", ", ".join(manifest.sources), file)
        return CachedFile(file, result)
    return None


def _is_whole(folder: str, path: str, result: BuildResult, kind: Kind) -> bool:
    entry = os.path.dirname(path)
    trust.check_folders(folder, (os.path.dirname(entry), entry))
    if kind != "other":
        check = verified.verify if kind == "library" else verified.has_digest
        return check(path, result.size, result.sha256, lambda status: trust.check_file(folder, path, status))
    try:
        status = os.lstat(path)
    except OSError:
        return False
    trust.check_file(folder, path, status)
    return (status.st_size, status.st_mtime_ns) == (result.size, result.modified)
