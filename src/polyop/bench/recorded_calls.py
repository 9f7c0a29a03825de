"""Read recorded calls (``POLYOP_RECORD``): operators with the specs and attributes of a real run."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..build import records
from ..call.bound import BoundOperator
from ..call.record import FORMAT, VARIABLE
from ..core.dtypes import dtype
from ..core.errors import ArgumentValueError
from ..core.spec import Spec

Inputs = tuple[BoundOperator, tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True)
class Row:
    """The calls of one operator with the same specs and attributes; a size that is a symbol is a text."""

    operator: str
    part_of: str
    tensors: tuple[Any, ...]
    attributes: dict[str, Any]
    seconds: float

    @property
    def is_symbolic(self) -> bool:
        """Whether a size is a symbol."""
        listed = [one for value in self.tensors for one in (value if isinstance(value, list) else [value])]
        return any(type(size) is not int for one in listed if one is not None for size in one.shape)


def read(path: Path) -> list[Row]:
    """Return the rows of a file, those that took the most time first.

    Raises ``ArgumentValueError`` that names the file and the field that is wrong.
    """
    try:
        data, _ = records.read(os.path.realpath(path))
        version = records.field(data, "format")
        rows = records.rows(records.field(data, "calls"))
    except (OSError, ValueError) as problem:
        raise _damaged(path, "", problem) from None
    if version != FORMAT:
        raise ArgumentValueError(f"{path}, format", f"must be {FORMAT}", str(version)[:40])
    return [_row(path, f"calls[{number}]", row) for number, row in enumerate(rows)]


def calls_of(
    paths: Sequence[Path], find: Callable[[str], BoundOperator], only: str | None = None
) -> list[Inputs]:
    """Return the operators with their inputs and attributes, those that took the most time first.

    ``only`` names one operator, whole or by the part after ``::``. Parts of operators, such as gradients, are
    left out, and so are calls of the same shapes from another host, or of symbolic sizes. Raises
    ``ArgumentValueError`` where nothing is left.
    """
    rows = sorted((row for path in paths for row in read(path)), key=lambda row: -row.seconds)
    found: dict[str, Inputs] = {}
    for row in rows:
        if not row.part_of and only in (None, *_names(row.operator)) and not row.is_symbolic:
            key = repr((row.operator, row.tensors, row.attributes))
            found.setdefault(key, (find(row.operator), row.tensors, row.attributes))
    if not found:
        names = ", ".join(sorted({row.operator for row in rows})) or "no calls"
        files = ", ".join(map(str, paths))
        raise ArgumentValueError(files, f"must have calls of {only or 'an operator'}", names)
    return list(found.values())


def _names(operator: str) -> tuple[str, str]:
    return operator, operator.rpartition("::")[2]


def _row(path: Path, where: str, row: Any) -> Row:
    """Return a row that was checked field by field."""
    seen: dict[str, Any] = {}
    name = ""
    try:
        for name, check in _FIELDS.items():
            given = records.field(row, name) if name != "seconds" else row.get(name, 0.0)
            seen[name] = check(given)
    except (ValueError, TypeError) as problem:
        raise _damaged(path, f"{where}.{name}", problem) from None
    return Row(**seen)


def _damaged(path: Path, where: str, problem: Exception) -> ArgumentValueError:
    subject = f"{path}, {where}" if where else str(path)
    hint = f"{VARIABLE}={path} python program.py writes one"
    seen = f"{type(problem).__name__}: {problem}" if isinstance(problem, OSError) else str(problem)
    return ArgumentValueError(subject, "must be a file of recorded calls", seen, hint=hint)


def _fields(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"a {type(value).__name__} has no fields")  # noqa: TRY004 - damage is one kind of error
    return value


def _tensors(value: Any) -> tuple[Any, ...]:
    return tuple(
        [_spec(x) for x in one] if isinstance(one, list) else _spec(one) for one in _fields(value).values()
    )


def _spec(one: Any) -> Spec | None:
    if one is None:
        return None
    shape = tuple(records.rows(records.field(one, "shape")))
    for size in shape:
        if not isinstance(size, str) and records.int64(size) < 0:
            raise ValueError(f"a size of {size}")
    kind, device = (records.text(records.field(one, name)) for name in ("dtype", "device"))
    return Spec(shape, dtype(kind), device)


def _attributes(value: Any) -> dict[str, Any]:
    return {name: _value(one) for name, one in _fields(value).items()}


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        raise ValueError("an attribute that is a dictionary")  # noqa: TRY004 - damage is one kind of error
    return tuple(_value(one) for one in value) if isinstance(value, list) else value


_FIELDS: dict[str, Callable[[Any], Any]] = {
    "operator": records.text,
    "part_of": records.text,
    "tensors": _tensors,
    "attributes": _attributes,
    "seconds": records.timestamp,
}
"""The fields of a row, and what returns the value of each or raises. Other fields are not read."""
