"""Read recorded calls (``POLYOP_RECORD``): operators with the specs and attributes of a real run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..call.bound import BoundOperator
from ..call.record import FORMAT, VARIABLE
from ..core.dtypes import dtype
from ..core.errors import ArgumentValueError
from ..core.spec import Spec

Inputs = tuple[BoundOperator, tuple[Any, ...], dict[str, Any]]


def read(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file, those that took the most time first; raises ``ArgumentValueError``."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] != FORMAT:
            raise ArgumentValueError(str(path), f"must have format {FORMAT}", data["format"])
        rows: list[dict[str, Any]] = data["calls"]
        for row in rows:
            _specs(row)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        if isinstance(problem, ArgumentValueError):
            raise
        hint = f"{VARIABLE}={path} python program.py writes one"
        seen = f"{type(problem).__name__}: {problem}"
        raise ArgumentValueError(str(path), "must be a file of recorded calls", seen, hint=hint) from None
    return rows


def calls_of(path: Path, find: Callable[[str], BoundOperator], only: str | None = None) -> list[Inputs]:
    """Return the operators with their inputs and attributes, those that took the most time first.

    ``only`` names one operator, whole or by the part after ``::``. Parts of operators, such as gradients, are
    left out, and so are calls of the same shapes from another host, or of symbolic sizes. Raises
    ``ArgumentValueError`` where nothing is left.
    """
    rows = [row for row in read(path) if not row["part_of"] and only in (None, *_names(row["operator"]))]
    found: dict[str, Inputs] = {}
    for row in rows:
        specs, attributes = _specs(row), {k: _value(v) for k, v in row["attributes"].items()}
        if specs is not None:
            key = repr((row["operator"], specs, attributes))
            found.setdefault(key, (find(row["operator"]), specs, attributes))
    if not found:
        names = ", ".join(sorted({row["operator"] for row in read(path)})) or "no calls"
        raise ArgumentValueError(str(path), f"must have calls of {only or 'an operator'}", names)
    return list(found.values())


def _names(operator: str) -> tuple[str, str]:
    return operator, operator.rpartition("::")[2]


def _specs(row: dict[str, Any]) -> tuple[Any, ...] | None:
    """Return the specs of a row; None where a size is a symbol."""
    specs: list[Any] = []
    for value in row["tensors"].values():
        listed = value if isinstance(value, list) else [value]
        if any(type(size) is not int for one in listed if one for size in one["shape"]):
            return None
        some = [
            Spec(tuple(one["shape"]), dtype(one["dtype"]), one["device"]) if one else None for one in listed
        ]
        specs.append(some if isinstance(value, list) else some[0])
    return tuple(specs)


def _value(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
