"""The signature of a call: what kind each argument is, where no schema says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

Signature: TypeAlias = tuple[str, ...]
"""One letter or type per argument: ``"T"`` a tensor, ``"L"`` a list of them, else a schema type."""

_SCALARS: tuple[tuple[type, str], ...] = ((bool, "bool"), (int, "int"), (float, "float"), (str, "str"))


def signature_of(args: Sequence[Any], is_tensor: Callable[[Any], bool]) -> Signature:
    """Return the signature of positional arguments; what is no attribute counts as a tensor."""
    return tuple(_letter(value, is_tensor) for value in args)


def _letter(value: Any, is_tensor: Callable[[Any], bool]) -> str:
    if is_tensor(value):
        return "T"
    if isinstance(value, (list, tuple)):
        if any(is_tensor(item) for item in value):
            return "L"
        items = {_letter(item, is_tensor) for item in value}
        return f"{'float' if items == {'int', 'float'} else items.pop() if len(items) == 1 else 'int'}[]"
    return next((name for kind, name in _SCALARS if isinstance(value, kind)), "T")
