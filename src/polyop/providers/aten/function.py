"""A function over PyTorch tensors with a schema of ours, and how its arguments are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ...core.dtypes import dtype
from ...core.errors import KernelError, PolyopError
from ...core.schema import Schema
from ...hosts.torch.tensors import TORCH_DTYPES


@dataclass(frozen=True, eq=False)
class TorchFunction:
    """An operator of PyTorch, or the gradient of one, called with one value per argument.

    Calling it returns a flat list: the results that are tensors, opened lists of them, and None
    where PyTorch leaves one undefined. ``aliases`` are dropped: what was written is an argument.
    """

    schema: Schema
    function: Callable[..., Any]

    def __call__(self, arguments: Sequence[Any]) -> list[Any]:
        """Return the new tensors; what PyTorch raises is a ``KernelError`` with its words."""
        positional, keywords = self.schema.split(arguments)
        try:
            result = self.function(*positional, **keywords)
        except PolyopError:
            raise
        except Exception as problem:
            raise refused(self.schema, problem) from problem
        items = result if isinstance(result, tuple) else (result,)
        if not self.schema.returns:
            items = ()
        flat: list[Any] = []
        for item, declared in zip(items, self.schema.returns, strict=True):
            if declared.type.alias:
                continue
            flat.extend(item if declared.type.is_list else (item,))
        return flat


def refused(schema: Schema, problem: Exception) -> KernelError:
    """Return the error for a call that PyTorch did not take."""
    said = str(problem).split("\nException raised from", maxsplit=1)[0].strip()  # then a C++ backtrace
    return KernelError(
        schema.qualified_name, f"PyTorch raised {type(problem).__name__}: {said or 'no message'}"
    )


_OWN = (torch.dtype, torch.device, torch.layout, torch.memory_format)

_CONVERT: dict[str, Callable[[Any], Any]] = {  # types that have objects of their own in PyTorch
    "ScalarType": lambda value: TORCH_DTYPES[dtype(value).name],
    "Device": torch.device,
    "Layout": lambda value: getattr(torch, str(value).removeprefix("torch.")),
    "MemoryFormat": lambda value: getattr(torch, str(value).removeprefix("torch.")),
}

SPECIAL = frozenset(_CONVERT)
"""The types of attributes that PyTorch has objects of its own for."""


def special(base: str, value: Any) -> Any:
    """Return an attribute of a type in :data:`SPECIAL` as PyTorch's object; None stays None."""
    return value if value is None or isinstance(value, _OWN) else _CONVERT[base](value)


special._dynamo_marked_constant = True  # type: ignore[attr-defined]  # noqa: SLF001 - computed while tracing


def to_torch(schema: Schema, arguments: Sequence[Any], tensor: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Return arguments as PyTorch takes them; ``tensor`` converts each tensor among them."""
    made: list[Any] = []
    for argument, value in zip(schema.arguments, arguments, strict=True):
        if argument.type.base in SPECIAL:
            made.append(special(argument.type.base, value))
        elif not argument.type.is_tensor or value is None:
            made.append(value)
        elif argument.type.is_list:
            made.append([None if item is None else tensor(item) for item in value])
        else:
            made.append(tensor(value))
    return tuple(made)


def opened(schema: Schema, arguments: Sequence[Any]) -> list[Any]:
    """Return the tensors among arguments in order, lists opened, absent ones as None."""
    flat: list[Any] = []
    for position in schema.tensor_positions:
        value = arguments[position]
        if schema.arguments[position].type.is_list:
            flat.extend(value or ())
        else:
            flat.append(value)
    return flat


def closed(schema: Schema, arguments: Sequence[Any], flat: Iterator[Any]) -> tuple[Any, ...]:
    """Return one value per argument from what :func:`opened` gave; None for attributes."""
    made: list[Any] = []
    for argument, value in zip(schema.arguments, arguments, strict=True):
        if not argument.type.is_tensor:
            made.append(None)
        elif argument.type.is_list:
            made.append(None if value is None else tuple(next(flat) for _ in value))
        else:
            made.append(next(flat))
    return tuple(made)
