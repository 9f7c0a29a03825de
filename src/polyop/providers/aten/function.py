"""A function over PyTorch tensors with a polyop schema, and conversions of its arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ...core.dtypes import dtype
from ...core.errors import KernelError, PolyopError
from ...core.schema import Schema
from ...hosts.torch.tensors import TORCH_DTYPES

TENSOR, TENSORS = "Tensor", "Tensor[]"
"""The kinds of results in ``result_kinds`` that are tensors; any other is a type of the schema grammar."""


@dataclass(frozen=True, eq=False)
class TorchFunction:
    """An operator of PyTorch, or its gradient, called with one value per argument.

    It returns a flat list of tensors, with lists flattened, and None for a result that PyTorch leaves
    undefined. A result that aliases a written argument is left out. ``seeded``: it may draw random numbers.
    ``result_kinds``: of an operator with other results, the kind of each of PyTorch's; values are left out.
    ``differentiates``: it calls ``torch.autograd``. ``shapes_by_a_run``: the shapes of its
    results follow from those of its arguments, but its kernel for tensors without data does not tell them.
    ``registered``: the name of the operator that it calls, if another package registered that in PyTorch.
    """

    schema: Schema
    function: Callable[..., Any]
    seeded: bool = False
    result_kinds: tuple[str, ...] = ()
    differentiates: bool = False
    shapes_by_a_run: bool = False
    registered: str = ""

    def draws(self, arguments: Sequence[Any]) -> bool:
        """Whether a call draws random numbers: PyTorch marks the operator, and no argument turns that off."""
        values = {a.name: value for a, value in zip(self.schema.arguments, arguments, strict=True)}
        training = all(values.get(name) is not False for name in ("train", "training"))
        return self.seeded and training and all(values.get(name) != 0 for name in ("dropout", "dropout_p"))

    def __call__(self, arguments: Sequence[Any]) -> list[Any]:
        """Return the new tensors; an error of PyTorch becomes a ``KernelError`` with its message."""
        return self.tensors(self.result(arguments))

    def tensors(self, result: Any) -> list[Any]:
        """Return the new tensors of what PyTorch's operator returned."""
        if self.result_kinds:
            parts = zip(self.result_kinds, result if len(self.result_kinds) > 1 else (result,), strict=True)
            listed = [
                item if kind == TENSORS else [item] for kind, item in parts if kind in (TENSOR, TENSORS)
            ]
            return [tensor for items in listed for tensor in items]
        items = result if isinstance(result, tuple) else (result,)
        if not self.schema.returns:
            items = ()
        flat: list[Any] = []
        for item, declared in zip(items, self.schema.returns, strict=True):
            if declared.type.alias:
                continue
            flat.extend(item if declared.type.is_list else (item,))
        return flat

    def result(self, arguments: Sequence[Any]) -> Any:
        """Return what PyTorch's operator returns; an error of PyTorch becomes a ``KernelError``.

        A call that PyTorch refuses because an index has 32 bits is made again with 64: JAX's default mode has
        no others.
        """
        try:
            return self._result(arguments)
        except KernelError as problem:
            wide = _with_int64(self.schema, arguments)
            if wide is None or not _WANTS_INT64.search(str(problem.__cause__)):
                raise
        return self._result(wide)

    def _result(self, arguments: Sequence[Any]) -> Any:
        positional, keywords = self.schema.split(arguments)
        try:
            return self.function(*positional, **keywords)
        except PolyopError:
            raise
        except Exception as problem:
            raise call_error(self.schema, problem) from problem


_WANTS_INT64 = re.compile("int64|long", re.IGNORECASE)
"""What PyTorch says of a tensor that must be of int64: "expected scalar type Long but found Int"."""


def _with_int64(schema: Schema, arguments: Sequence[Any]) -> tuple[Any, ...] | None:
    """Return the arguments with int64 in place of int32 tensors that are only read; None without any."""
    found = False

    def widen(value: Any) -> Any:
        nonlocal found
        if isinstance(value, (list, tuple)):
            return type(value)(map(widen, value))
        if not isinstance(value, torch.Tensor) or value.dtype != torch.int32:
            return value
        found = True
        return value.long()

    rows = zip(schema.arguments, arguments, strict=True)
    wide = tuple(
        widen(value) if argument.type.is_tensor and not argument.type.writes else value
        for argument, value in rows
    )
    return wide if found else None


def call_error(schema: Schema, problem: Exception) -> KernelError:
    """Return the error for an exception that PyTorch raised in a call."""
    message = str(problem).split("\nException raised from", maxsplit=1)[0].strip()  # no C++ backtrace
    return KernelError(
        schema.qualified_name, f"PyTorch raised {type(problem).__name__}: {message or 'no message'}"
    )


_TORCH_TYPES = (torch.dtype, torch.device, torch.layout, torch.memory_format)

_CONVERT: dict[str, Callable[[Any], Any]] = {  # schema type: to PyTorch's object
    "ScalarType": lambda value: TORCH_DTYPES[dtype(value).name],
    "Device": torch.device,
    "Layout": lambda value: getattr(torch, str(value).removeprefix("torch.")),
    "MemoryFormat": lambda value: getattr(torch, str(value).removeprefix("torch.")),
}

SPECIAL = frozenset(_CONVERT)
"""The attribute types for which PyTorch has its own classes."""


def special(base: str, value: Any) -> Any:
    """Return an attribute of a type in :data:`SPECIAL` as PyTorch's object; None stays None."""
    return value if value is None or isinstance(value, _TORCH_TYPES) else _CONVERT[base](value)


special._dynamo_marked_constant = True  # type: ignore[attr-defined]  # noqa: SLF001 - the tracer may run it


def to_torch(schema: Schema, arguments: Sequence[Any], tensor: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Return the arguments for PyTorch; ``tensor`` converts each tensor among them."""
    converted: list[Any] = []
    for argument, value in zip(schema.arguments, arguments, strict=True):
        if argument.type.base in SPECIAL:
            converted.append(special(argument.type.base, value))
        elif not argument.type.is_tensor or value is None:
            converted.append(value)
        elif argument.type.is_list:
            converted.append([None if item is None else tensor(item) for item in value])
        else:
            converted.append(tensor(value))
    return tuple(converted)


def flatten_tensors(schema: Schema, arguments: Sequence[Any]) -> list[Any]:
    """Return the tensors among the arguments in order, with lists flattened; an absent one is None."""
    flat: list[Any] = []
    for position in schema.tensor_positions:
        value = arguments[position]
        if schema.arguments[position].type.is_list:
            flat.extend(value or ())
        else:
            flat.append(value)
    return flat


def flat_flags(schema: Schema, arguments: Sequence[Any], wanted: Sequence[bool] | None) -> list[bool]:
    """Return a flag for each tensor, in the order of ``flatten_tensors``."""
    flags = []
    for position in schema.tensor_positions:
        is_list = schema.arguments[position].type.is_list
        count = len(arguments[position] or ()) if is_list else 1
        flags += [wanted is None or wanted[position]] * count
    return flags


def unflatten_tensors(schema: Schema, arguments: Sequence[Any], flat: Iterator[Any]) -> tuple[Any, ...]:
    """Return one value per argument from the order of :func:`flatten_tensors`; None for attributes."""
    values: list[Any] = []
    for argument, value in zip(schema.arguments, arguments, strict=True):
        if not argument.type.is_tensor:
            values.append(None)
        elif argument.type.is_list:
            values.append(None if value is None else tuple(next(flat) for _ in value))
        else:
            values.append(next(flat))
    return tuple(values)
