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

from .hashes import digest, text_digest
from .manifest import Manifest, Variant
from .paths import cache_folder

ALWAYS_HASHED = 8 << 20
"""Bytes: a larger result is hashed only when its time has changed; it is flushed to disk for that."""


class Found(NamedTuple):
    """A result in the cache, and the inputs it stands for."""

    path: str
    variant: Variant


def identity_of(request: Any) -> str:
    """Return the name of a request, anything JSON can hold, in the cache."""
    return text_digest(json.dumps(request, sort_keys=True))[:40]


def manifest_path(folder: str, identity: str) -> str:
    """Return where the manifest of a request is kept."""
    return f"{folder}/requests/{identity}.json"


def ready(request: Any) -> str | None:
    """Return the path of the result for a request when the user's cache has a whole and current one."""
    found = look_up(cache_folder(), identity_of(request))
    return None if found is None else found.path


def look_up(folder: str, identity: str, log: Callable[[str], None] = lambda text: None) -> Found | None:
    """Return what the cache in a folder has for a request, if anything; tell ``log`` of damage."""
    try:
        manifest = Manifest.read(manifest_path(folder, identity))
    except OSError:
        return None
    except ValueError as problem:
        log(f"manifest {identity}: {problem}")
        return None
    for position, old in enumerate(manifest.variants):
        variant = old.current()
        if variant is None:
            continue
        path = f"{folder}/entries/{variant.key}/{variant.file}"
        if not _is_whole(path, variant):
            log(f"entry {variant.key}: {variant.file} is missing or damaged")
            return None
        with contextlib.suppress(OSError):  # a cache that can only be read is good enough here
            if variant is not old:
                manifest.variants[position] = variant
                manifest.write(manifest_path(folder, identity))
            os.utime(path, ns=(time.time_ns(), os.stat(path).st_mtime_ns))
        return Found(path, variant)
    return None


def _is_whole(path: str, variant: Variant) -> bool:
    try:
        seen = os.stat(path)
        trusted = seen.st_size > ALWAYS_HASHED and seen.st_mtime_ns == variant.modified
        return seen.st_size == variant.size and (trusted or digest(path) == variant.sha256)
    except OSError:
        return False
