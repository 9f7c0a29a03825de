"""What the cache remembers of one request: each result, and the inputs it was made from."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

from ..binary.trust import check_file
from . import atomic, records
from .inputs import Input

FORMAT = 1
KEY_DIGITS = 40
_KEPT = 8
"""Results kept for a request: an edit that is undone finds its library again."""


class BuildResult(NamedTuple):
    """One result: ``file`` in the entry ``key``.

    It is valid while every input has the same content and no path in ``absent`` exists. ``modified`` is in
    nanoseconds, ``created`` in seconds.
    """

    key: str
    file: str
    size: int
    modified: int
    sha256: str
    created: float
    inputs: tuple[Input, ...]
    absent: tuple[str, ...]

    def current(self) -> BuildResult | None:
        """Return this result, with newer times where files were only touched; None when it is out of date."""
        if any(map(os.path.lexists, self.absent)):
            return None
        found = []
        for item in self.inputs:
            updated = item.now()
            if updated is None:
                return None
            found.append(updated)
        if all(new is old for new, old in zip(found, self.inputs, strict=True)):
            return self
        return self._replace(inputs=tuple(found))


def _build_result(row: Any) -> BuildResult:
    def rows(name: str) -> list[Any]:
        return records.rows(records.field(row, name))

    return BuildResult(
        records.hexadecimal(records.field(row, "key"), KEY_DIGITS),
        records.base_name(records.field(row, "file")),
        records.whole(records.field(row, "size")),
        records.whole(records.field(row, "modified")),
        records.hexadecimal(records.field(row, "sha256"), 64),
        records.moment(records.field(row, "created")),
        tuple(_input(records.rows(item)) for item in rows("inputs")),
        tuple(records.text(item) for item in rows("absent")),
    )


def _input(row: list[Any]) -> Input:
    if len(row) != len(Input._fields):
        raise ValueError(f"an input has {len(Input._fields)} parts, not {len(row)}")
    path, size, modified, changed, sha256 = row
    return Input(
        records.text(path),
        records.whole(size),
        records.whole(modified),
        records.whole(changed),
        records.hexadecimal(sha256, 64),
    )


class Manifest:
    """The results for one request, newest first, and the names of its sources."""

    __slots__ = ("results", "sources")

    def __init__(self, sources: list[str] | None = None, results: list[BuildResult] | None = None) -> None:
        self.sources = sources or []
        self.results = results or []

    @classmethod
    def read(cls, path: str, folder: str | None = None) -> Manifest:
        """Return the manifest in a file; ``folder`` is the cache, others may not be able to write in.

        Raises ``OSError``, ``ValueError`` when it is damaged, and ``CacheError``.
        """
        data, seen = records.read(path)
        if folder is not None:
            check_file(folder, path, seen)
        if records.field(data, "format") != FORMAT:
            return cls()
        results = [_build_result(row) for row in records.rows(records.field(data, "variants"))]
        return cls([records.text(name) for name in records.rows(records.field(data, "sources"))], results)

    def add(self, result: BuildResult) -> list[BuildResult]:
        """Put a result first; return those that fall out."""
        kept = [result, *(old for old in self.results if old.key != result.key)]
        self.results = kept[:_KEPT]
        return kept[_KEPT:]

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the manifest in one step. Raises ``OSError``."""
        data = {
            "format": FORMAT,
            "sources": self.sources,
            "variants": [result._asdict() for result in self.results],  # the name in files of format 1
        }
        atomic.write_text(path, json.dumps(data, separators=(",", ":")))
