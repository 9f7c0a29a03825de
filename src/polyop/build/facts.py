"""Keep on disk what is slow to find out about files, such as a compiler's version, until one changes.

For example, the text that a compiler prints for ``--version``, for as long as its program stays the same.
"""

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


def cached(name: str, files: Sequence[str], compute: Callable[[], str]) -> str:
    """Return ``compute()``, a fact about files: computed again when a file's size or time has changed.

    The fact is stored under ``name``. Raises ``OSError`` for a missing file.
    """
    statuses = [os.stat(path) for path in files]
    stamps = [
        (path, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for path, s in zip(files, statuses, strict=True)
    ]
    newest = max((max(modified, changed) for _, _, modified, changed in stamps), default=0)
    if time.time_ns() - newest <= SETTLED:  # the file could change again without a new time stamp
        return compute()
    digest = text_digest(repr(stamps))
    path = f"{cache_folder()}/{FILE}"
    facts = _read(path)
    known_digest, fact = facts.get(name, ("", ""))
    if known_digest == digest:
        return fact
    fact = compute()
    with contextlib.suppress(OSError):  # a read-only cache is reported when something is built
        atomic.write_text(path, json.dumps({**facts, name: (digest, fact)}))
    return fact


def _read(path: str) -> dict[str, tuple[str, str]]:
    """Return the stored facts: name -> (digest of the files' stamps, fact).

    A file that is damaged, or that other users may write, counts as empty.
    """
    try:
        data, status = records.read(path)
        if problem_of(status) or not isinstance(data, dict):
            return {}
        rows = ((records.text(name), records.rows(row)) for name, row in data.items())
        return {name: (records.text(digest), records.text(fact)) for name, (digest, fact) in rows}
    except (OSError, ValueError):
        return {}
