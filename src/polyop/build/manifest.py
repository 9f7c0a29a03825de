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


class Variant(NamedTuple):
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

    def current(self) -> Variant | None:
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


def _variant(row: Any) -> Variant:
    def rows(name: str) -> list[Any]:
        return records.rows(records.field(row, name))

    return Variant(
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

    __slots__ = ("sources", "variants")

    def __init__(self, sources: list[str] | None = None, variants: list[Variant] | None = None) -> None:
        self.sources = sources or []
        self.variants = variants or []

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
        variants = [_variant(row) for row in records.rows(records.field(data, "variants"))]
        return cls([records.text(name) for name in records.rows(records.field(data, "sources"))], variants)

    def add(self, variant: Variant) -> list[Variant]:
        """Put a result first; return those that fall out."""
        kept = [variant, *(old for old in self.variants if old.key != variant.key)]
        self.variants = kept[:_KEPT]
        return kept[_KEPT:]

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the manifest in one step. Raises ``OSError``."""
        data = {
            "format": FORMAT,
            "sources": self.sources,
            "variants": [v._asdict() for v in self.variants],  # its inputs become lists of their fields
        }
        atomic.write_text(path, json.dumps(data, separators=(",", ":")))
