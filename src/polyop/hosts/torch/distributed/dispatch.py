"""The rule by which ``torch.ops`` runs an operator on DTensors. It is below autograd: gradients come here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.distributed.tensor import DTensor

from ....call.bound import BoundOperator
from ....core.arguments import bind
from ....core.untraced import untraced
from .division import Division, divide

_LIMIT = 1024  # calls of different shapes that an operator remembers


def rule_of(bound: BoundOperator, overload: Any) -> Callable[..., Any]:
    """Return the function that PyTorch calls with the arguments of a call that has a DTensor."""
    known: dict[Any, Division] = {}
    schema = bound.schema

    @untraced
    def dispatch(cls: Any, func: Any, types: Any, args: Any, kwargs: Any = None) -> Any:
        del cls, func, types
        arguments = bind(schema, args, kwargs or {})
        key = _key(arguments)
        division = None if key is None else known.get(key)
        if division is None:
            division = divide(bound, overload, arguments)
            if key is not None:
                if len(known) >= _LIMIT:
                    known.clear()
                known[key] = division
        return division(arguments)

    return dispatch


def _key(arguments: tuple[Any, ...]) -> Any:
    """Return what decides how a call is divided; None if it cannot be remembered."""
    key = tuple(map(_part, arguments))
    try:
        hash(key)
    except TypeError:  # symbolic sizes, while a compiler traces
        return None
    return key


def _part(value: Any) -> Any:
    if isinstance(value, DTensor):
        spec = value._spec
        return id(spec.mesh), spec  # equal meshes may have other process groups
    if isinstance(value, torch.Tensor):
        return value.dtype, value.shape
    if isinstance(value, (list, tuple)):
        return tuple(map(_part, value))
    return type(value), value
