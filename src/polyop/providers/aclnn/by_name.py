"""Calls of an operator with tensors in order and attributes by name, as ``Custom`` makes them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core.errors import ArgumentTypeError, ArgumentValueError
from ...core.information.attribute_types import schema_type, value_type_of
from ...core.schema import Argument, Schema
from . import cann
from .arguments import match
from .registry import find, full_name, known
from .rehearsal import ascend
from .row import DEFAULTS, Row
from .run import run

_GENERATED_NAME = re.compile(r"x\d+")  # polyop names attributes so if the author gave no names


def check(name: str, device: str) -> None:
    """Raise ``UnsupportedError`` for an unknown operator, ``HostError`` for Ascend without CANN."""
    if device == "npu" and ascend() == "cann" and cann.has(full_name(name)):
        return
    find(name)


def launch_named(
    name: str,
    schema: Schema,
    values: Sequence[Any],
    fixed: Mapping[str, Any],
    outputs: Sequence[Any],
    device: str = "cpu",
) -> None:
    """Run an aclnn operator on the arguments of another operator, and write ``outputs``.

    ``values`` belong to ``schema``, the other operator's. Tensors are matched in order; an optional
    one may be missing. Attributes are matched by name, ignoring case and underscores, or in order if
    polyop generated the names (``x1``). ``fixed`` has further attributes. On the device ``"npu"``
    CANN runs the operator, unless POLYOP_ASCEND=rehearse is set.

    Raises what ``launch`` raises, and ``ArgumentValueError`` for an attribute that the prototype does
    not have.
    """
    on_cann = device == "npu" and ascend() == "cann"
    row = _guessed(full_name(name), schema, fixed, outputs) if on_cann and not known(name) else find(name)
    pairs = list(zip(schema.arguments, values, strict=True))
    tensors = [value for argument, value in pairs if argument.type.is_tensor]
    by_position = dict.fromkeys(range(len(row.schema.arguments)))
    by_position.update(_tensors(row, tensors))
    by_position.update(_attributes(row, [(a, v) for a, v in pairs if not a.type.is_tensor], fixed))
    by_position.update(_outputs(row, outputs))
    _fill_missing(row, by_position)
    originals = _protect(row, by_position)
    arguments = match(row, [by_position[i] for i in range(len(by_position))])
    if on_cann:
        cann.launch(row.schema, arguments)
    else:
        run(row, arguments)
    for i, original in originals.items():
        _check_unchanged(row, i, original, by_position[i])


def _protect(row: Row, by_position: dict[int, Any]) -> dict[int, Any]:
    """Replace read-only tensors that the operator may write by copies; return the originals."""
    originals = {
        i: by_position[i]
        for i in row.written
        if isinstance(by_position[i], np.ndarray) and not by_position[i].flags.writeable
    }
    by_position.update({i: np.array(value) for i, value in originals.items()})
    return originals


def _check_unchanged(row: Row, position: int, original: Any, copy: Any) -> None:
    """Raise ``ArgumentValueError`` if the operator has written the copy of a read-only tensor."""
    if original.tobytes() == copy.tobytes():
        return
    rule = "is written, and the operator that it was passed to does not say so"
    hint = "declare it in a schema, as Tensor(a!), and call the operator of that schema"
    raise ArgumentValueError(f"{row.name}: argument {row.schema.arguments[position].name}", rule, hint=hint)


def _guessed(name: str, schema: Schema, fixed: Mapping[str, Any], outputs: Sequence[Any]) -> Row:
    """Return a row for a CANN operator without a prototype: inputs, then attributes, then outputs."""
    parts = [f"{a.type} {a.name}" for a in schema.arguments if a.type.is_tensor]
    parts += [f"{a.type} {a.name}" for _, a in schema.attributes()]
    for key, value in fixed.items():
        kind = value_type_of(value)
        if kind is None:
            raise ArgumentTypeError(
                name, f"attribute {key!r} must be a number, a text or a list", repr(value)
            )
        parts.append(f"{schema_type(kind)} {key}")
    parts += [f"Tensor({chr(ord('a') + i)}!) output{i}" for i in range(len(outputs))]
    return Row(f"{name}({', '.join(parts)}) -> ()", lambda *_: None)


def _tensors(row: Row, tensors: Sequence[Any]) -> dict[int, Any]:
    positions = [i for i in row.inputs if row.schema.arguments[i].type.is_tensor]
    needed = [i for i in positions if not row.schema.arguments[i].type.is_optional]
    matched = positions if len(tensors) == len(positions) else needed
    if len(tensors) != len(matched):
        rule = f"takes {len(positions)} tensors" + (f", or {len(needed)}" if needed != positions else "")
        raise ArgumentTypeError(row.name, rule, len(tensors), hint=row.shown)
    return dict(zip(matched, tensors, strict=True))


def _outputs(row: Row, outputs: Sequence[Any]) -> dict[int, Any]:
    positions = list(row.outputs)
    lists = [i for i in positions if row.schema.arguments[i].type.is_list]
    if lists:
        return {lists[0]: list(outputs)}
    needed = [i for i in positions if not row.schema.arguments[i].type.is_optional]
    if not len(needed) <= len(outputs) <= len(positions):
        rule = f"writes {len(positions)} outputs"
        raise ArgumentTypeError(row.name, rule, len(outputs), hint=row.shown)
    return dict(
        zip(positions if len(outputs) == len(positions) else positions[: len(outputs)], outputs, strict=True)
    )


def _attributes(
    row: Row, attributes: Sequence[tuple[Argument, Any]], fixed: Mapping[str, Any]
) -> dict[int, Any]:
    positions = {_plain(a.name): i for i, a in row.schema.attributes()}
    values: dict[int, Any] = {}
    unnamed = []
    for argument, value in attributes:
        position = positions.get(_plain(argument.name))
        if position is None and _GENERATED_NAME.fullmatch(argument.name):
            unnamed.append(value)
        else:
            values[_checked(row, position, argument.name)] = value
    for key, value in fixed.items():
        values[_checked(row, positions.get(_plain(key)), key)] = value
    rest = [i for i in positions.values() if i not in values]
    if len(unnamed) > len(rest):
        rule = f"takes {len(positions)} attributes"
        seen = len(unnamed) + len(values)
        raise ArgumentTypeError(row.name, rule, seen, hint=row.shown)
    values.update(zip(rest, unnamed, strict=False))
    return values


def _checked(row: Row, position: int | None, key: str) -> int:
    if position is None:
        names = ", ".join(a.name for _, a in row.schema.attributes()) or "none"
        rule = f"has no attribute {key!r}; its attributes are {names}"
        raise ArgumentValueError(row.name, rule, hint=row.shown)
    return position


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _fill_missing(row: Row, by_position: dict[int, Any]) -> None:
    for i, argument in row.schema.attributes():
        if by_position[i] is None and not argument.type.is_optional:
            if argument.name not in DEFAULTS:
                rule = f"needs the attribute {argument.name!r}"
                hint = f"add_prim_attr({argument.name!r}, value); {row.shown}"
                raise ArgumentTypeError(row.name, rule, hint=hint)
            by_position[i] = DEFAULTS[argument.name]
