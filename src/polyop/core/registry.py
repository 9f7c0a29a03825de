"""The operators of this process, by qualified name."""

from __future__ import annotations

import threading
from typing import Any

from .errors import SchemaError
from .operator import Operator

_lock = threading.Lock()
_operators: dict[str, Any] = {}


def add(bound: Any) -> None:
    """Register a bound operator under its name.

    Defining it again at the same place (a notebook cell, a reloaded module) replaces it; a
    second definition elsewhere raises ``SchemaError`` that names both places.
    """
    new: Operator = bound.operator
    with _lock:
        old = _operators.get(new.name)
        if old is not None and str(old.operator.origin) != str(new.origin):
            rule = f"the name is taken by the operator defined at {old.operator.origin}"
            raise SchemaError(new.name, rule, where=new.origin, hint="choose another name or namespace")
        _operators[new.name] = bound


def unique(namespace: str, name: str) -> str:
    """Return ``name``, with a number appended when the namespace has it already."""
    with _lock:
        number, candidate = 1, name
        while f"{namespace}::{candidate}" in _operators or (namespace, candidate) in _reserved:
            number += 1
            candidate = f"{name}_{number}"
        _reserved.add((namespace, candidate))
        return candidate


_reserved: set[tuple[str, str]] = set()


def find(name: str) -> Any:
    """Return the operator called ``name``; raises ``LookupError`` with the nearest names."""
    if name in _operators:
        return _operators[name]
    import difflib

    near = difflib.get_close_matches(name, _operators) or sorted(_operators)[:8]
    raise LookupError(f"no operator {name!r}; there are {', '.join(near) or 'none'}")


def operators() -> tuple[Any, ...]:
    """Return all registered operators, by name."""
    return tuple(_operators[name] for name in sorted(_operators))
