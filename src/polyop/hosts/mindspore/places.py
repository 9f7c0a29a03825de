"""The tensors of a call, one by one and in their places."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...core.schema import Schema


def filled(schema: Schema, arguments: Sequence[Any], tensors: Iterable[Any]) -> tuple[Any, ...]:
    """Return the arguments with other tensors, in order, in place of those that are there."""
    left = iter(tensors)
    return tuple(
        value
        if not argument.type.is_tensor or value is None
        else tuple(None if item is None else next(left) for item in value)
        if isinstance(value, (list, tuple))
        else next(left)
        for argument, value in zip(schema.arguments, arguments, strict=True)
    )


def paired(schema: Schema, arguments: Sequence[Any], grads: Sequence[Any]) -> list[Any]:
    """Return one gradient or None for each tensor that is there, from one for each argument."""
    found: list[Any] = []
    for argument, value, grad in zip(schema.arguments, arguments, grads, strict=True):
        if not argument.type.is_tensor or value is None:
            continue
        if not isinstance(value, (list, tuple)):
            found.append(grad)
            continue
        row = (None,) * len(value) if grad is None else grad
        found += [one for item, one in zip(value, row, strict=True) if item is not None]
    return found


def names(schema: Schema, arguments: Sequence[Any]) -> list[str]:
    """Return the name of each tensor that is there: ``x``, or ``xs[1]`` in a list."""
    found: list[str] = []
    for argument, value in zip(schema.arguments, arguments, strict=True):
        if not argument.type.is_tensor or value is None:
            continue
        if not isinstance(value, (list, tuple)):
            found.append(argument.name)
            continue
        found += [f"{argument.name}[{i}]" for i, item in enumerate(value) if item is not None]
    return found
