"""The namespaces of this process: each belongs to one library, in C++ or in Python."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from ...core.errors import SchemaError

lock = threading.RLock()


@dataclass(frozen=True)
class Owner:
    """Who has a namespace: the place that says so, the library object, and what makes it the same again."""

    place: str
    library: Any
    identity: Any


_owners: dict[str, Owner] = {}


def check_free(namespace: str, owner: Owner, hint: str) -> None:
    """Raise ``SchemaError`` with both places where another library has the namespace."""
    old = _owners.get(namespace)
    if old is None or old.identity == owner.identity:
        return
    rule = f"the namespace is taken by the library at {old.place}"
    raise SchemaError(f"library {namespace}", rule, where=owner.place, hint=hint)


def take(namespace: str, owner: Owner) -> None:
    """Give a namespace to a library."""
    _owners[namespace] = owner


def libraries() -> list[Any]:
    """Return the libraries, in the order in which they came."""
    return list(dict.fromkeys(owner.library for owner in _owners.values()))


def give_up(library: Any) -> None:
    """Take a library's namespaces away."""
    for namespace in [name for name, owner in _owners.items() if owner.library is library]:
        del _owners[namespace]


def owner(namespace: str) -> Owner | None:
    """Return who has a namespace, or None."""
    return _owners.get(namespace)
