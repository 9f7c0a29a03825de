"""What the cache remembers of one request: each result, and the inputs it was made from."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

from . import atomic
from .inputs import Input

FORMAT = 1
_KEPT = 8
"""Results per request: an edit that is taken back finds its library again."""


class Variant(NamedTuple):
    """One result: ``file`` in the entry ``key``, valid while inputs are equal and absent paths absent."""

    key: str
    file: str
    size: int
    modified: int
    sha256: str
    created: float
    inputs: tuple[Input, ...]
    absent: tuple[str, ...]

    def current(self) -> Variant | None:
        """Return this (with newer times where files were only touched), or None when out of date."""
        if any(map(os.path.lexists, self.absent)):
            return None
        found = []
        for item in self.inputs:
            same = item.now()
            if same is None:
                return None
            found.append(same)
        if all(new is old for new, old in zip(found, self.inputs, strict=True)):
            return self
        return self._replace(inputs=tuple(found))


class Manifest:
    """The results for one request, newest first, and the names of its sources."""

    __slots__ = ("sources", "variants")

    def __init__(self, sources: list[str] | None = None, variants: list[Variant] | None = None) -> None:
        self.sources = sources or []
        self.variants = variants or []

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Manifest:
        """Return the manifest in a file. Raises ``OSError``, or ``ValueError`` when it is damaged."""
        try:
            with open(path, "rb") as file:
                data: Any = json.loads(file.read())
            if data["format"] != FORMAT:
                return cls()
            variants = [
                Variant(
                    row["key"],
                    row["file"],
                    int(row["size"]),
                    int(row["modified"]),
                    row["sha256"],
                    float(row["created"]),
                    tuple(Input(*item) for item in row["inputs"]),
                    tuple(row["absent"]),
                )
                for row in data["variants"]
            ]
            return cls([str(name) for name in data["sources"]], variants)
        except (LookupError, TypeError, AttributeError) as problem:
            raise ValueError(f"not a manifest: {problem}") from None

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
