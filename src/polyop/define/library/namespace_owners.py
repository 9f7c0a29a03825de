"""The namespaces of this process: each belongs to one library, in C++ or in Python.

Callers hold ``locks.define`` from the check of a namespace until they have claimed it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...core.errors import SchemaError


@dataclass(frozen=True)
class Owner:
    """The owner of a namespace: where it is claimed, the library object, and its identity.

    A library with an equal identity may replace the owner: it is the same one, built or run again.
    """

    place: str
    library: Any
    identity: Any


_owners: dict[str, Owner] = {}


def check_free(namespace: str, owner: Owner, hint: str) -> None:
    """Raise ``SchemaError`` with both places if another library owns the namespace."""
    old = _owners.get(namespace)
    if old is None or old.identity == owner.identity:
        return
    rule = f"the namespace is taken by the library at {old.place}"
    raise SchemaError(f"library {namespace}", rule, where=owner.place, hint=hint)


def claim(namespace: str, owner: Owner) -> None:
    """Give a namespace to a library."""
    _owners[namespace] = owner


def libraries() -> list[Any]:
    """Return the libraries, in the order in which they claimed their namespaces."""
    return list(dict.fromkeys(owner.library for owner in _owners.values()))


def release(library: Any) -> None:
    """Release a library's namespaces."""
    for namespace in [name for name, owner in _owners.items() if owner.library is library]:
        del _owners[namespace]


def owner(namespace: str) -> Owner | None:
    """Return the owner of a namespace, or None."""
    return _owners.get(namespace)
