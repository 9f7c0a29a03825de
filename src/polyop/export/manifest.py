"""Make the manifest of an exported library, which :mod:`polyop.binary.export_manifest` reads."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from ..binary.export_manifest import FORMAT, MARK
from .header import prefix_of
from .operator import ExportedKernel, ExportedOperator
from .surfaces import SURFACES


def manifest(operators: Sequence[ExportedOperator], library: str) -> dict[str, Any]:
    """Return the manifest as values of JSON."""
    rows = [_row(one) for one in operators]
    return {"format": FORMAT, "register_torch": f"{prefix_of(library)}_register_torch", "operators": rows}


def _row(operator: ExportedOperator) -> dict[str, Any]:
    refused = {name: surface.refused(operator) for name, surface in SURFACES.items()}
    return {
        "name": operator.name,
        "schema": str(operator.schema),
        "c": operator.c_name,
        "made_from": operator.kind,
        "kernels": [_kernel(operator, one) for one in operator.kernels],
        "outputs": [one.outputs for one in operator.kernels if one.outputs is not None],
        "infer": operator.infer,
        "fixed": {name: _plain(value) for name, value in operator.fixed.items()},
        "notation": dict(operator.notation),
        "backward": operator.backward,
        "no_backward": operator.no_backward,
        "doc": operator.doc,
        "not_for": {name: reason for name, reason in refused.items() if reason},
    }


def _plain(value: Any) -> Any:
    """Return a value of JSON, which has no infinity and no NaN: these are objects with their names."""
    if isinstance(value, (list, tuple)):
        return list(map(_plain, value))
    is_number = not isinstance(value, float) or math.isfinite(value)
    return value if is_number else {"float": repr(value)}


def _kernel(operator: ExportedOperator, kernel: ExportedKernel) -> dict[str, Any]:
    names = [argument.name for argument in operator.schema.tensor_arguments]
    rows = zip(names, kernel.dtypes, kernel.ranks, strict=True)
    return {name: {"dtypes": dtypes, "dimensions": rank} for name, dtypes, rank in rows}


def source(operators: Sequence[ExportedOperator], library: str) -> str:
    """Return the C that puts the manifest into the library."""
    text = json.dumps(json.dumps(manifest(operators, library)))  # a C literal too: JSON escapes all but ASCII
    return (
        '__attribute__((visibility("default"), used)) const char polyop_export_manifest[] =\n'
        f'    "{MARK}" {text};\n'
    )
