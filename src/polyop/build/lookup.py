"""What is in the cache already: all that a process needs which finds its kernels built.

This and all that ``compile`` imports before it asks here must stay quick to import, as every process
pays for it: paths are text, since pathlib alone takes as long as the rest, records are named tuples
and plain classes, since a dataclass compiles its methods when it is made, and hashing is
``hashes``. Making what is missing is the work of ``make`` and ``cache``.
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
from . import entry_locks
from .headers import check_headers
from .manifest import BuildResult, Manifest
from .paths import cache_folder


class CachedFile(NamedTuple):
    """The path of a result in the cache, and its record."""

    path: str
    result: BuildResult


def identity_of(request: Any) -> str:
    """Return the name of a request, anything JSON can hold, in the cache."""
    return text_digest(json.dumps(request, sort_keys=True))[:40]


def manifest_path(folder: str, identity: str) -> str:
    """Return where the manifest of a request is kept."""
    return f"{folder}/requests/{identity}.json"


def cached_path(request: Any) -> str | None:
    """Return the path of the result for a request when the user's cache has a whole and current one."""
    found = look_up(cache_folder(), identity_of(request))
    return None if found is None else found.path


def look_up(
    folder: str, identity: str, log: Callable[[str], None] = lambda text: None, *, library: bool = True
) -> CachedFile | None:
    """Return what the cache in a folder has for a request, if anything; tell ``log`` of damage.

    A library is hashed and stays open for the call that loads it (:mod:`polyop.binary.verified`); what
    compilers read again, ``library=False``, was hashed when it was made, and must keep its size and time.
    Raises ``CacheError`` where others may change what is in the cache.
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
        entry_locks.hold(folder, result.key)
        if not _is_whole(folder, real + file[len(folder) :], result, library):
            log(f"entry {result.key}: {result.file} is missing or damaged")
            return None
        with contextlib.suppress(OSError):  # a cache that can only be read is good enough here
            if result is not old:
                manifest.results[position] = result
                manifest.write(path)
            os.utime(file, ns=(time.time_ns(), os.stat(file).st_mtime_ns))
        return CachedFile(file, result)
    return None


def _is_whole(folder: str, path: str, result: BuildResult, library: bool) -> bool:
    entry = os.path.dirname(path)
    trust.check_folders(folder, (os.path.dirname(entry), entry))
    if library:
        return verified.verify(
            path, result.size, result.sha256, lambda seen: trust.check_file(folder, path, seen)
        )
    try:
        seen = os.lstat(path)
    except OSError:
        return False
    trust.check_file(folder, path, seen)
    return (seen.st_size, seen.st_mtime_ns) == (result.size, result.modified)
