"""The overload that fits: as in PyTorch, a number may stand for a tensor, and an array for a number."""

# ruff: noqa: SLF001 - PyTorch has no public names for these

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from ...call.host import Host
from ...core.schema import Argument, Schema

_NUMBERS = (bool, int, float, complex)


def numbers_for_tensors(schema: Schema, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[int]:
    """Return the positions of Python's numbers in the places of tensors, but for what the operator writes."""
    positions = []
    for i in schema.tensor_positions:
        argument = schema.arguments[i]
        value = args[i] if i < len(args) else kwargs.get(argument.name)
        if isinstance(value, _NUMBERS) and not (argument.type.is_list or argument.type.writes):
            positions.append(i)
    return positions


def scalar_overload(overload: Any, positions: Sequence[int]) -> Any:
    """Return the overload that has numbers at these positions and is else the same, or None."""
    packet = overload.overloadpacket
    arguments = overload._schema.arguments
    wanted = [(a.name, "number" if i in positions else _kind(a.type)) for i, a in enumerate(arguments)]
    for name in packet.overloads():
        other = getattr(packet, name)
        if [(a.name, _kind(a.type)) for a in other._schema.arguments] == wanted:
            return other
    return None


def _kind(torch_type: Any) -> str:
    text = str(torch_type)
    return "number" if text in ("number", "Scalar") else text


def as_array(host: Host, value: complex) -> Any:
    """Return a number as an array without dimensions, of the dtype that PyTorch gives it."""
    kind = str(torch.tensor(value).dtype).removeprefix("torch.")
    return host.namespace().asarray(np.array(value, kind))


def constant(argument: Argument, value: Any) -> Any:
    """Return an attribute that is given as an array as Python's numbers, if it holds data; else unchanged."""
    if not hasattr(value, "shape") or not hasattr(value, "dtype") or isinstance(value, np.generic):
        return value
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(value, jax.core.Tracer):
        return value
    array = np.asarray(value)
    return array.tolist() if array.ndim == int(argument.type.is_list) else value
