"""Say why a build is not in the cache: which input has changed since the last one. Only logs use it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from .lookup import manifest_path
from .manifest import BuildResult, Kind, Manifest, kind_of


def why_not_cached(folder: Path, identity: str, sources: Sequence[str], kind: Kind) -> str:
    """Return why the cache in ``folder`` has no valid result for the request ``identity``."""
    try:
        results = Manifest.read(manifest_path(str(folder), identity)).results
    except (OSError, ValueError):
        results = []
    if results:
        return min((_changes(result) for result in results), key=len)
    if _was_built_otherwise(folder, identity, sources, kind):
        otherwise = "another text, other options, another compiler or another polyop"
        return f"it was built before, with {otherwise}"
    return "it was not built before"


def _changes(result: BuildResult) -> str:
    """Return what is no longer as it was when a result was built."""
    appeared = [path for path in result.absent if os.path.lexists(path)]
    changed = [item.path for item in result.inputs if item.refreshed() is None]
    texts = [f"{path} has changed" if os.path.lexists(path) else f"{path} is gone" for path in changed]
    texts += [f"{path} is found before another header now" for path in appeared]
    return ", ".join(texts) or "its file in the cache is missing or damaged"


def _was_built_otherwise(folder: Path, identity: str, sources: Sequence[str], kind: Kind) -> bool:
    for path in (folder / "requests").glob("*.json"):
        if path.stem != identity:
            try:
                earlier = Manifest.read(str(path), whole=False)
            except (OSError, ValueError):
                continue
            same_kind = any(kind_of(result.file) == kind for result in earlier.results)
            if same_kind and earlier.sources == list(sources):
                return True
    return False
