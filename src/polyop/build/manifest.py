"""The record that the cache keeps for one request: its results, and the inputs of each.

A request has several results when its sources or headers changed between builds.
"""

from __future__ import annotations

import functools
import json
import os
from typing import Any, Literal, NamedTuple

from ..binary.trust import check_file
from . import atomic, records
from .inputs import Input

FORMAT = 1
KEY_DIGITS = 40
_MAX_RESULTS = 8
"""Results kept for a request, so that undoing an edit finds the earlier library."""


Kind = Literal["library", "object", "other"]
"""What the cache keeps: libraries, which are loaded; objects, which are linked; other files, such as a
precompiled header."""


def kind_of(file: str) -> Kind:
    """Return the kind of a file of the cache, from its name.

    >>> kind_of("k.so"), kind_of("k.o"), kind_of("torch.h.gch")
    ('library', 'object', 'other')
    """
    return "library" if file.endswith(".so") else "object" if file.endswith(".o") else "other"


class BuildResult(NamedTuple):
    """One result of a request: the file ``file`` in the entry ``key``.

    It is valid while every input has the same content and no path in ``absent`` exists. ``modified`` is the
    file's modification time in nanoseconds, ``created`` the time of the build in seconds.
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
        """Return this result if it is valid, else None. Inputs that were only touched get their new times."""
        if any(map(os.path.lexists, self.absent)):
            return None
        inputs = []
        for item in self.inputs:
            updated = item.refreshed()
            if updated is None:
                return None
            inputs.append(updated)
        if all(new is old for new, old in zip(inputs, self.inputs, strict=True)):
            return self
        return self._replace(inputs=tuple(inputs))


def _build_result(row: Any, *, whole: bool) -> BuildResult:
    def rows(name: str) -> list[Any]:
        return records.rows(records.field(row, name)) if whole else []

    return BuildResult(
        records.hexadecimal(records.field(row, "key"), KEY_DIGITS),
        records.base_name(records.field(row, "file")),
        records.int64(records.field(row, "size")),
        records.int64(records.field(row, "modified")),
        records.hexadecimal(records.field(row, "sha256"), 64),
        records.timestamp(records.field(row, "created")),
        tuple(_input(records.rows(item)) for item in rows("inputs")),
        tuple(records.text(item) for item in rows("absent")),
    )


def _input(row: list[Any]) -> Input:
    if len(row) != len(Input._fields):
        raise ValueError(f"an input has {len(Input._fields)} parts, not {len(row)}")
    path, size, modified, changed, sha256 = row
    return Input(
        records.text(path),
        records.int64(size),
        records.int64(modified),
        records.int64(changed),
        records.hexadecimal(sha256, 64),
    )


@functools.lru_cache(maxsize=8)  # each function of a source reads the source's manifest
def _parsed(data: bytes, *, whole: bool) -> tuple[tuple[str, ...], tuple[BuildResult, ...]]:
    """Return the sources and results of a manifest's bytes; without inputs if not ``whole``."""
    record = records.parse(data)
    if records.field(record, "format") != FORMAT:
        return (), ()
    results = tuple(
        _build_result(row, whole=whole) for row in records.rows(records.field(record, "variants"))
    )
    return tuple(records.text(name) for name in records.rows(records.field(record, "sources"))), results


class Manifest:
    """The results for one request, newest first, and the names of its sources."""

    __slots__ = ("results", "sources")

    def __init__(self, sources: list[str] | None = None, results: list[BuildResult] | None = None) -> None:
        self.sources = sources or []
        self.results = results or []

    @classmethod
    def read(cls, path: str, folder: str | None = None, *, whole: bool = True) -> Manifest:
        """Return the manifest in a file. With the cache's ``folder``, check that only the user may write it.

        If not ``whole``, its results have no inputs and no absent paths, whose checks take most of the time:
        that is enough for a listing. A manifest of another format reads as an empty one.
        Raises ``OSError``, ``ValueError`` if the file is damaged, and ``CacheError`` if the check fails.
        """
        data, status = records.read_bytes(path)
        if folder is not None:
            check_file(folder, path, status)
        sources, results = _parsed(data, whole=whole)
        return cls(list(sources), list(results))

    def add(self, result: BuildResult) -> list[BuildResult]:
        """Put a result first, and return the oldest results, which this drops."""
        results = [result, *(old for old in self.results if old.key != result.key)]
        self.results = results[:_MAX_RESULTS]
        return results[_MAX_RESULTS:]

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the manifest atomically. Raises ``OSError``."""
        data = {
            "format": FORMAT,
            "sources": self.sources,
            "variants": [result._asdict() for result in self.results],  # the name in files of format 1
        }
        atomic.write_text(path, json.dumps(data, separators=(",", ":")))
