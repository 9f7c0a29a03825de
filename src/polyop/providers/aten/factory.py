"""Operators without a tensor among their arguments: the caller says whose array is returned."""

from __future__ import annotations

from typing import Any

from ...call.host import Host, host_of, need
from ...core.errors import ArgumentTypeError, ArgumentValueError, HostError
from ...core.schema import Schema

_OPTIONS = ("host", "like")
HOSTS = ("numpy", "torch", "jax", "mindspore")
"""The hosts whose arrays such an operator can return."""


def host_of_call(schema: Schema, kwargs: dict[str, Any], where: Any) -> tuple[Host, dict[str, Any]]:
    """Return the host that ``host=`` or ``like=`` names, and the other keywords.

    Raises ``HostError`` without either, and ``ArgumentValueError`` for an unknown name.
    """
    host, like = (None if _is_argument(schema, name) else kwargs.get(name) for name in _OPTIONS)
    others = without_options(schema, kwargs)
    if host is None and like is None:
        further = ", ".join(name for name in HOSTS if name != "jax")
        hint = f'pass host="jax" (or {further}), or like= an array of the framework'
        rule = "needs at least one tensor to know which framework is calling, and its schema has none"
        raise HostError(schema.qualified_name, rule, where=where, hint=hint)
    if host is not None and like is not None:
        raise ArgumentTypeError(schema.qualified_name, "takes host= or like=, not both")
    if host is None:
        owner = host_of(like)
        if owner is None or owner.name not in HOSTS:
            rule = f"must be an array of {', '.join(HOSTS[:-1])} or {HOSTS[-1]}"
            raise ArgumentValueError(f"{schema.qualified_name}: like", rule, type(like).__name__)
        return owner, others
    if host not in HOSTS:
        subject = f"{schema.qualified_name}: host"
        raise ArgumentValueError(subject, f"must be one of {', '.join(HOSTS)}", host)
    return need(host), others


def without_options(schema: Schema, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords without ``host`` and ``like``."""
    return {name: value for name, value in kwargs.items() if not _is_option(schema, name)}


def has_options(schema: Schema, kwargs: dict[str, Any]) -> bool:
    """Whether ``host`` or ``like`` is given."""
    return any(value is not None and _is_option(schema, name) for name, value in kwargs.items())


def _is_option(schema: Schema, name: str) -> bool:
    return name in _OPTIONS and not _is_argument(schema, name)


def _is_argument(schema: Schema, name: str) -> bool:
    return any(argument.name == name for argument in schema.arguments)
