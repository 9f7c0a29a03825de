"""What the cache remembers of one request: each result, and the inputs it was made from."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from . import atomic
from .inputs import Input

FORMAT = 1
_KEPT = 8
"""Results per request: an edit that is taken back finds its library again."""


@dataclass(frozen=True, slots=True)
class Variant:
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
        return replace(self, inputs=tuple(found))


@dataclass(slots=True)
class Manifest:
    """The results for one request, newest first."""

    sources: list[str] = field(default_factory=list)
    variants: list[Variant] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """Return the manifest in a file. Raises ``OSError``, or ``ValueError`` when it is damaged."""
        try:
            data: Any = json.loads(path.read_bytes())
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

    def write(self, path: Path) -> None:
        """Write the manifest in one step. Raises ``OSError``."""
        rows = [
            {
                "key": v.key,
                "file": v.file,
                "size": v.size,
                "modified": v.modified,
                "sha256": v.sha256,
                "created": v.created,
                "inputs": [[i.path, i.size, i.modified, i.changed, i.sha256] for i in v.inputs],
                "absent": v.absent,
            }
            for v in self.variants
        ]
        data = {"format": FORMAT, "sources": self.sources, "variants": rows}
        atomic.write_text(path, json.dumps(data, separators=(",", ":")))
