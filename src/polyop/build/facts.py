"""What takes long to find out about files, kept in the cache until one of them changes."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Sequence

from ..binary.hashes import text_digest
from ..binary.trust import problem_of
from . import atomic, records
from .inputs import SETTLED
from .paths import cache_folder

FILE = "facts.json"


def cached(name: str, files: Sequence[str], find: Callable[[], str]) -> str:
    """Return what ``find`` says about files: asked again when one has another size or time.

    The answer is kept under ``name``. Raises ``OSError`` for a file that is not there.
    """
    seen = [os.stat(path) for path in files]
    stamp = [(path, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for path, s in zip(files, seen, strict=True)]
    newest = max((max(modified, changed) for _, _, modified, changed in stamp), default=0)
    if time.time_ns() - newest <= SETTLED:  # it could change again within the same time stamp
        return find()
    wanted = text_digest(repr(stamp))
    path = f"{cache_folder()}/{FILE}"
    known = _known(path)
    when, what = known.get(name, ("", ""))
    if when == wanted:
        return what
    what = find()
    with contextlib.suppress(OSError):  # a cache that cannot be written is reported where it matters
        atomic.write_text(path, json.dumps({**known, name: (wanted, what)}))
    return what


def _known(path: str) -> dict[str, tuple[str, str]]:
    """Return what is kept; nothing of a file that is damaged, or that others may write."""
    try:
        data, seen = records.read(path)
        if problem_of(seen) or not isinstance(data, dict):
            return {}
        rows = ((records.text(key), records.rows(row)) for key, row in data.items())
        return {key: (records.text(when), records.text(what)) for key, (when, what) in rows}
    except (OSError, ValueError):
        return {}
