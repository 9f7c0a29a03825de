"""The value types of attributes in operator information, one row each, and the conversion of values."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ..arguments import attribute
from ..errors import ArgumentTypeError, InformationError
from ..limits import oversize, read_json, shown
from ..schema import Argument, Type


def schema_type(value_type: str) -> Type:
    """Return the schema type of a value type of :data:`VALUE_TYPES`.

    >>> str(schema_type("listInt"))
    'int[]'
    """
    base, lists, _ = VALUE_TYPES[value_type]
    return Type(base, ("[]",) * lists)


def typed(value_type: str, value: Any, subject: str) -> Any:
    """Return ``value`` as plain Python of the value type, with lists as tuples.

    Raises ``InformationError`` for a value of another type.
    """
    problem = oversize(value)
    if problem is not None:
        raise InformationError(subject, f"the value is too large: {problem}")
    if value_type == "all" and _plain(value):
        return freeze(value)
    try:
        return attribute(Argument("value", schema_type(value_type)), value, subject)
    except ArgumentTypeError:
        seen = f"{shown(value)} ({type(value).__name__})"
        raise InformationError(subject, f"the value must be of type {value_type}", seen) from None


def parse_default(value_type: str, default: Any, subject: str) -> Any:
    """Return the value of a default, which is written as text; items of a list are separated by commas.

    >>> parse_default("listFloat", "1, 2.5", "demo")
    (1.0, 2.5)

    Raises ``InformationError`` for a text that is no value of the type.
    """
    if not isinstance(default, str):
        return typed(value_type, default, subject)
    _, lists, read = VALUE_TYPES[value_type]
    try:
        if lists == 2:
            return typed(value_type, read_json(default), subject)
        if lists == 1:
            items = default.split(",") if default.strip() else []
            return tuple(read(item.strip()) for item in items)
        return read(default)
    except ValueError:
        form = ", items separated by commas" if lists == 1 else ", as in [[1, 2], [3]]" if lists else ""
        rule = f"the default value must be the text of a {value_type}{form}"
        raise InformationError(subject, rule, shown(default)) from None


def value_type_of(value: Any) -> str | None:
    """Return the value type of a Python value, or None if it is ambiguous, as for an empty list."""
    items = list(value) if isinstance(value, (list, tuple)) else [value]
    types = {type(item) for item in items}
    name = _OF_PYTHON.get(types.pop()) if len(types) == 1 else None
    return f"list{name.capitalize()}" if name and isinstance(value, (list, tuple)) else name


def freeze(value: Any) -> Any:
    """Return the value with lists as tuples and dictionaries as sorted pairs, at any depth."""
    if isinstance(value, (list, tuple)):
        return tuple(map(freeze, value))
    if isinstance(value, dict):
        return tuple(sorted((str(key), freeze(item)) for key, item in value.items()))
    return value


_INT64 = range(-(2**63), 2**63)


def _plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_plain, value))
    if isinstance(value, int):
        return value in _INT64
    return isinstance(value, (float, str))


def _int(text: str) -> int:
    if not re.fullmatch(r"\s*[-+]?[0-9]+\s*", text):  # int() accepts 1_000 and the digits of other scripts
        raise ValueError(text)
    number = int(text)
    if number not in _INT64:
        raise ValueError(text)
    return number


def _bool(text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise ValueError(text)
    return text.strip().lower() == "true"


def _number(text: str) -> int | float:
    try:
        return _int(text)
    except ValueError:
        return float(text)


def _any(text: str) -> bool | float | str:
    if text.strip().lower() in ("true", "false"):
        return _bool(text)
    try:
        return _number(text)
    except ValueError:
        return text


def _none(text: str) -> Any:
    raise ValueError(text)


VALUE_TYPES: dict[str, tuple[str, int, Callable[[str], Any]]] = {
    # value type   schema base, depth of lists, conversion of a default's text
    "int":         ("int", 0, _int),
    "str":         ("str", 0, str),
    "bool":        ("bool", 0, _bool),
    "float":       ("float", 0, float),
    "double":      ("float", 0, float),
    "number":      ("Scalar", 0, _number),
    "all":         ("Scalar", 0, _any),
    "tensor":      ("Tensor", 0, _none),
    "listInt":     ("int", 1, _int),
    "listStr":     ("str", 1, str),
    "listBool":    ("bool", 1, _bool),
    "listFloat":   ("float", 1, float),
    "listListInt": ("int", 2, _int),
}  # fmt: skip

_OF_PYTHON = {bool: "bool", int: "int", float: "float", str: "str"}
