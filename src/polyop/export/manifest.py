"""What an exported library says of itself: a JSON text in the file, which can be read without loading it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .operator import ExportedKernel, ExportedOperator
from .surfaces import SURFACES

MARK = "polyop-export-manifest:"
"""What the text begins with in the file; a zero byte ends it."""
FORMAT = 1
"""Goes up when the layout of the text changes."""


def manifest(operators: Sequence[ExportedOperator]) -> dict[str, Any]:
    """Return the manifest as values of JSON."""
    return {"format": FORMAT, "operators": [_row(one) for one in operators]}


def _row(operator: ExportedOperator) -> dict[str, Any]:
    refused = {name: surface.refused(operator) for name, surface in SURFACES.items()}
    return {
        "name": operator.name,
        "schema": str(operator.schema),
        "c": operator.c_name,
        "made_from": operator.kind,
        "kernels": [_kernel(operator, one) for one in operator.kernels],
        "notation": dict(operator.notation),
        "backward": operator.backward,
        "no_backward": operator.no_backward,
        "doc": operator.doc,
        "not_for": {name: reason for name, reason in refused.items() if reason},
    }


def _kernel(operator: ExportedOperator, kernel: ExportedKernel) -> dict[str, Any]:
    names = [operator.schema.arguments[i].name for i in operator.schema.tensor_positions]
    rows = zip(names, kernel.dtypes, kernel.ranks, strict=True)
    return {name: {"dtypes": dtypes, "dimensions": rank} for name, dtypes, rank in rows}


def source(operators: Sequence[ExportedOperator]) -> str:
    """Return the C that puts the manifest into the library."""
    text = json.dumps(json.dumps(manifest(operators)))  # a C literal too: JSON escapes all but ASCII
    return (
        '__attribute__((visibility("default"), used)) const char polyop_export_manifest[] =\n'
        f'    "{MARK}" {text};\n'
    )


def read(path: str | Path) -> dict[str, Any] | None:
    """Return the manifest of a library, or None if the file is no exported library. Nothing is loaded."""
    _, mark, rest = Path(path).read_bytes().rpartition(MARK.encode())
    if not mark:
        return None
    try:
        values: dict[str, Any] = json.loads(rest[: rest.index(0)])
    except ValueError:
        return None
    return values if isinstance(values, dict) and "operators" in values else None
