"""The tensors of a call as one sequence: in the order of the schema, lists opened.

A value here is what a call passes for an argument: a tensor, None, a list of these, or an attribute.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..core.schema import Schema


def with_absent(schema: Schema, arguments: Sequence[Any]) -> list[Any]:
    """Return the tensors of a call, with None for those that are absent.

    >>> from polyop.core.parse import parse
    >>> schema = parse("a::f(Tensor x, int n, Tensor? y, Tensor[] zs) -> Tensor")
    >>> with_absent(schema, ("x", 3, None, ["z0", "z1"]))
    ['x', None, 'z0', 'z1']
    """
    values = (arguments[i] for i in schema.tensor_positions)
    return [x for value in values for x in (value if isinstance(value, (list, tuple)) else (value,))]


def flat_gradients(schema: Schema, arguments: Sequence[Any], grads: Sequence[Any]) -> list[Any]:
    """Return the gradient or None of each tensor that is present; ``grads`` has an entry for each argument.

    >>> from polyop.core.parse import parse
    >>> schema = parse("a::f(Tensor x, int n, Tensor? y, Tensor[] zs) -> Tensor")
    >>> flat_gradients(schema, ("x", 3, None, ["z0", "z1"]), ("dx", None, None, None))
    ['dx', None, None]
    """
    flat: list[Any] = []
    for argument, value, grad in zip(schema.arguments, arguments, grads, strict=True):
        if not argument.type.is_tensor or value is None:
            continue
        if not isinstance(value, (list, tuple)):
            flat.append(grad)
            continue
        items = (None,) * len(value) if grad is None else grad
        flat += [item_grad for item, item_grad in zip(value, items, strict=True) if item is not None]
    return flat


def with_tensors(schema: Schema, arguments: Sequence[Any], tensors: Iterable[Any]) -> tuple[Any, ...]:
    """Return the arguments with their tensors replaced, in order, by ``tensors``."""
    remaining = iter(tensors)
    return tuple(
        value
        if not argument.type.is_tensor or value is None
        else tuple(None if item is None else next(remaining) for item in value)
        if isinstance(value, (list, tuple))
        else next(remaining)
        for argument, value in zip(schema.arguments, arguments, strict=True)
    )


def tensor_names(schema: Schema, arguments: Sequence[Any]) -> list[str]:
    """Return the name of each tensor: ``x``, or ``xs[1]`` in a list."""
    names: list[str] = []
    for argument, value in zip(schema.arguments, arguments, strict=True):
        if not argument.type.is_tensor or value is None:
            continue
        if not isinstance(value, (list, tuple)):
            names.append(argument.name)
            continue
        names += [f"{argument.name}[{i}]" for i, item in enumerate(value) if item is not None]
    return names
