"""Matches the values of a call with the arguments of a prototype."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...core.arguments import attribute
from ...core.dtypes import DType, dtype, dtype_of_type_id
from ...core.errors import ArgumentTypeError
from ...core.schema import Argument
from .row import DEFAULTS, Row


def is_tensor(value: Any) -> bool:
    """Whether a value is an array or a tensor; NumPy's scalars count as numbers."""
    return hasattr(value, "dtype") and hasattr(value, "ndim") and not isinstance(value, np.generic)


def match(row: Row, args: Sequence[Any], *, outputs: bool = True) -> list[Any]:
    """Return one value per argument of the prototype, with attributes converted to their types.

    Accepts the order of the prototype, or inputs and attributes first and outputs last. The
    attributes in ``DEFAULTS`` may be missing, either all or those after the outputs. With
    ``outputs`` false, pure outputs may be None or missing too. Raises ``ArgumentTypeError``, which
    shows the prototype.
    """
    orders = list(_orders(row, outputs))
    fitting = [order for order in orders if len(order) == len(args)]
    for order in fitting:
        fitted = [
            None
            if value is None and not outputs and i in row.outputs
            else _fit(row.schema.arguments[i], value)
            for i, value in zip(order, args, strict=True)
        ]
        if all(value is not _MISMATCH for value in fitted):
            values = {i: DEFAULTS.get(a.name) for i, a in enumerate(row.schema.arguments)}
            values.update(zip(order, fitted, strict=True))
            return [values[i] for i in range(len(values))]
    if not fitting:
        counts = " or ".join(map(str, sorted({len(order) for order in orders}, reverse=True)))
        raise ArgumentTypeError(row.name, f"takes {counts} arguments", len(args), hint=row.shown)
    raise _mismatch(row, fitting, args)


@lru_cache(maxsize=512)
def _orders(row: Row, outputs: bool) -> tuple[tuple[int, ...], ...]:
    arguments = row.schema.arguments
    prototype_order = tuple(range(len(arguments)))
    with_default = tuple(i for i in prototype_order if arguments[i].name in DEFAULTS)
    after_outputs = tuple(i for i in with_default if i > max(row.written))
    bases = [prototype_order, (*row.inputs, *row.outputs)] + ([] if outputs else [row.inputs])
    orders = (
        tuple(i for i in base if i not in omitted)
        for omitted in ((), after_outputs, with_default)
        for base in bases
    )
    return tuple(dict.fromkeys(orders))


def written(row: Row, count: int) -> tuple[tuple[int, ...], ...]:
    """Return the possible positions of the written arguments in a call with ``count`` values.

    There is one tuple of positions for each order of arguments that ``match`` accepts.
    """
    orders = (order for order in _orders(row, True) if len(order) == count)
    positions = (tuple(order.index(i) for i in row.written if i in order) for order in orders)
    return tuple(dict.fromkeys(positions))


_MISMATCH = object()


def _fit(argument: Argument, value: Any) -> Any:
    """Return the value converted to the argument's type, or ``_MISMATCH``."""
    kind = argument.type
    if value is None:
        return None if kind.is_optional else _MISMATCH
    if not kind.is_tensor:
        try:
            return as_dtype(value) if kind.base == "ScalarType" else attribute(argument, value, "")
        except ArgumentTypeError:
            return _MISMATCH
    if not kind.is_list:
        value = np.asarray(value) if isinstance(value, np.generic) and not kind.writes else value
        return value if is_tensor(value) else _MISMATCH
    if not isinstance(value, (list, tuple)):
        return _MISMATCH
    optional_items = kind.suffixes[:1] == ("?",)
    return list(value) if all(is_tensor(v) or (optional_items and v is None) for v in value) else _MISMATCH


def as_dtype(value: Any) -> DType:
    """Return the dtype for a name, or for the number of a MindSpore ``TypeId``.

    >>> str(as_dtype(43))
    'float32'

    Raises ``ArgumentTypeError``.
    """
    row = dtype_of_type_id(value) if isinstance(value, int) and not isinstance(value, bool) else dtype(value)
    if row is None:
        raise ArgumentTypeError("dtype", "must be a dtype's name or its TypeId", repr(value))
    return row


def _mismatch(row: Row, orders: Sequence[tuple[int, ...]], args: Sequence[Any]) -> ArgumentTypeError:
    """Return the error for the first mismatch, in the order with the most matches before it."""

    def matches(order: tuple[int, ...]) -> int:
        pairs = zip(order, args, strict=True)
        return len(
            list(
                itertools.takewhile(lambda p: _fit(row.schema.arguments[p[0]], p[1]) is not _MISMATCH, pairs)
            )
        )

    order = max(orders, key=matches)
    position = matches(order)
    argument = row.schema.arguments[order[position]]
    value = args[position]
    seen = _described(value)
    rule = (
        "must be a dtype's name or its TypeId"
        if argument.type.base == "ScalarType"
        else f"must be {argument.type}"
    )
    return ArgumentTypeError(f"{row.name}: argument {argument.name}", rule, seen, hint=row.shown)


def _described(value: Any) -> str:
    if is_tensor(value):
        return shown(value)
    if isinstance(value, (list, tuple)) and any(map(is_tensor, value)):
        return f"a list of {', '.join(map(_described, value))}"
    return f"{value!r} ({type(value).__name__})"


def shown(value: Any) -> str:
    """Return ``dtype[shape]`` of a tensor."""
    return f"{str(value.dtype).rsplit('.', 1)[-1]}[{', '.join(map(str, value.shape))}]"


def tensors(values: Sequence[Any]) -> Iterator[Any]:
    """Yield the tensors among the values, those in lists too."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from tensors(value)
        elif is_tensor(value):
            yield value
