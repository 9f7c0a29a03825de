"""The signature of a call: the kind of each argument, for operators whose schema depends on the call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

Signature: TypeAlias = tuple[str, ...]
"""One entry per argument: ``"T"`` for a tensor, ``"L"`` for a list of tensors, else a schema type."""

_SCALARS: tuple[tuple[type, str], ...] = ((bool, "bool"), (int, "int"), (float, "float"), (str, "str"))


def signature_of(args: Sequence[Any], is_tensor: Callable[[Any], bool]) -> Signature:
    """Return the signature of positional arguments. A value of no known type counts as a tensor."""
    return tuple(_kind(value, is_tensor) for value in args)


def _kind(value: Any, is_tensor: Callable[[Any], bool]) -> str:
    if is_tensor(value):
        return "T"
    if isinstance(value, (list, tuple)):
        if any(is_tensor(item) for item in value):
            return "L"
        items = {_kind(item, is_tensor) for item in value}
        return f"{'float' if items == {'int', 'float'} else items.pop() if len(items) == 1 else 'int'}[]"
    return next((name for kind, name in _SCALARS if isinstance(value, kind)), "T")
