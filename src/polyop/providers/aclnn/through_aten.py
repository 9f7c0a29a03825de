"""Operators of aclnn that PyTorch has under the same name: its operator runs them on the CPU.

The two libraries name most operators alike, and list the arguments in the same order. The prototype follows
PyTorch's schema: CANN's own is what its documents say. ``differences`` has the names that CANN's documents
give to other arguments: they are refused, as a call would give wrong values.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ...core.errors import ArgumentValueError, UnsupportedError
from ...core.late import load
from ...core.schema import MISSING, Argument, Schema
from ...core.texts import by_small_letters
from .differences import (
    CUBE_MATH_TYPE_BEFORE_OUTPUTS,
    CUBE_MATH_TYPE_LAST,
    OTHER_ARGUMENTS,
    OTHER_NAMES,
)
from .row import HOW_TO_REGISTER, Row

_PLACES = ("Layout", "MemoryFormat", "Device")
"""Types of keyword arguments that aclnn does not have: they say where a result lies, not what is in it."""

_NAMES_OF_PLACES = ("pin_memory", "non_blocking", "sparse_grad", "side", "implicit")
"""The same by name. ``side`` of ``searchsorted`` is a form of ``right``; ``implicit`` changes no value."""

_WITH_OTHER_ARGUMENTS = by_small_letters(OTHER_ARGUMENTS)


@lru_cache(maxsize=512)
def row_of(name: str) -> Row | None:
    """Return the row of ``aclnnSelu`` or ``aclnnInplaceSelu``; None if PyTorch has no such operator.

    Raises ``HostError`` without PyTorch, and ``UnsupportedError`` for an operator that draws random numbers
    or takes other arguments in CANN.
    """
    short = name.removeprefix("aclnn")
    theirs = _other_arguments(short)
    if theirs is not None:
        rule = f"takes other arguments in CANN than in PyTorch, and PyTorch would run it here: {theirs}"
        raise UnsupportedError(name, rule, hint=HOW_TO_REGISTER)
    if short.startswith("Inplace"):
        row = row_of(f"aclnn{short.removeprefix('Inplace')}")
        return row.in_place() if row is not None and row.inplace else None
    aten = load("provider", "aten")
    try:
        written = OTHER_NAMES.get(short) or aten.spelled(short)
        operator = None if written is None else aten.aten(written)
    except (ArgumentValueError, UnsupportedError):  # several overloads, or a type that only PyTorch has
        return None
    return None if operator is None else _row(name, operator)


def _other_arguments(short: str) -> str | None:
    """Return CANN's arguments if PyTorch's are others. Letters of any case name an operator of PyTorch's."""
    name = _WITH_OTHER_ARGUMENTS.get(short.lower())
    return None if name is None else OTHER_ARGUMENTS[name]


def _row(name: str, operator: Any) -> Row | None:
    schema = operator.operator.schema
    if schema.mutates or not schema.tensor_positions or operator.function.result_kinds:
        return None
    if operator.function.seeded:
        rule = "draws random numbers, by a seed in aclnn, and PyTorch's operator takes a generator"
        raise UnsupportedError(name, rule, hint=HOW_TO_REGISTER)
    short = name.removeprefix("aclnn")
    cube = ["int cubeMathType"]
    taken = [argument for argument in schema.arguments if not _is_place(argument)]
    parts = [f"{argument.type} {argument.name}" for argument in taken]
    parts += cube if short in CUBE_MATH_TYPE_BEFORE_OUTPUTS else []
    parts += _outputs(schema)
    parts += cube if short in CUBE_MATH_TYPE_LAST else []
    names = [argument.name for argument in taken if argument.keyword_only]

    def function(_: Any, *values: Any) -> Any:
        values = values[: len(taken)]  # without cubeMathType
        first = len(values) - len(names)
        return operator(*values[:first], **dict(zip(names, values[first:], strict=True)))

    alone = len(schema.returns) == 1 and not schema.returns[0].type.is_list
    inplace = alone and parts[0].startswith("Tensor self") and _other_arguments(f"Inplace{short}") is None
    return Row(f"{name}({', '.join(parts)}) -> ()", function, inplace=inplace, of_pytorch=True)


def _outputs(schema: Schema) -> list[str]:
    """Return the outputs of a prototype; those that ``output_mask`` turns off may be missing."""
    names = ["out"] if len(schema.returns) == 1 else [f"out{i}" for i in range(len(schema.returns))]
    absent = "?" * any(argument.name == "output_mask" for argument in schema.arguments)
    return [
        f"Tensor({chr(ord('a') + i)}!){''.join(result.type.suffixes)}{absent} {name}"
        for i, (name, result) in enumerate(zip(names, schema.returns, strict=True))
    ]


def _is_place(argument: Argument) -> bool:
    is_place = argument.type.base in _PLACES or argument.name in _NAMES_OF_PLACES
    return is_place and argument.keyword_only and argument.default is not MISSING
