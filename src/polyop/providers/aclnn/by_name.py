"""An operator called with tensors in order and attributes by name, as ``Custom`` does."""

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

_MADE_UP = re.compile(r"x\d+")  # a name that no author gave


def check(name: str, device: str) -> None:
    """Raise ``UnsupportedError`` for a name that nobody implements, ``HostError`` for Ascend without CANN."""
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
    """Run an operator on the arguments of another operator's ``schema``; ``outputs`` are written.

    Tensors are taken in order, an absent optional one may be left out. Attributes go by their
    name, with or without capitals and underscores; those whose names polyop made up
    (``x1``) by their order. ``fixed`` are further attributes. For the device ``"npu"`` CANN
    runs it. Raises what ``launch`` raises, and ``ArgumentValueError`` for an attribute that
    the prototype does not have.
    """
    on_cann = device == "npu" and ascend() == "cann"
    row = _derived(full_name(name), schema, fixed, outputs) if on_cann and not known(name) else find(name)
    pairs = list(zip(schema.arguments, values, strict=True))
    tensors = [value for argument, value in pairs if argument.type.is_tensor]
    found = dict.fromkeys(range(len(row.schema.arguments)))
    found.update(_tensors(row, tensors))
    found.update(_attributes(row, [(a, v) for a, v in pairs if not a.type.is_tensor], fixed))
    found.update(_outputs(row, outputs))
    _check_missing(row, found)
    copies = _protect(row, found)
    arguments = match(row, [found[i] for i in range(len(found))])
    if on_cann:
        cann.launch(row.schema, arguments)
    else:
        run(row, arguments)
    for i, original in copies.items():
        _check_unchanged(row, i, original, found[i])


def _protect(row: Row, found: dict[int, Any]) -> dict[int, Any]:
    """Put copies in place of read-only tensors that the operator may write; return the tensors."""
    taken = {
        i: found[i] for i in row.written if isinstance(found[i], np.ndarray) and not found[i].flags.writeable
    }
    found.update({i: np.array(value) for i, value in taken.items()})
    return taken


def _check_unchanged(row: Row, place: int, original: Any, copy: Any) -> None:
    """Raise ``ArgumentValueError`` when a read-only tensor would have been written: nobody would see it."""
    if original.tobytes() == copy.tobytes():
        return
    rule = "is written, and the operator that it was passed to does not say so"
    hint = "declare it in a schema, as Tensor(a!), and call the operator of that schema"
    raise ArgumentValueError(f"{row.name}: argument {row.schema.arguments[place].name}", rule, hint=hint)


def _derived(name: str, schema: Schema, fixed: Mapping[str, Any], outputs: Sequence[Any]) -> Row:
    """Return the prototype that an operator nobody has described must have: inputs, attributes, outputs."""
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


def _tensors(row: Row, given: Sequence[Any]) -> dict[int, Any]:
    places = [i for i in row.inputs if row.schema.arguments[i].type.is_tensor]
    needed = [i for i in places if not row.schema.arguments[i].type.is_optional]
    taken = places if len(given) == len(places) else needed
    if len(given) != len(taken):
        rule = f"takes {len(places)} tensors" + (f", or {len(needed)}" if needed != places else "")
        raise ArgumentTypeError(row.name, rule, len(given), hint=f"its prototype: {row.schema}")
    return dict(zip(taken, given, strict=True))


def _outputs(row: Row, given: Sequence[Any]) -> dict[int, Any]:
    places = list(row.outputs)
    lists = [i for i in places if row.schema.arguments[i].type.is_list]
    if lists:
        return {lists[0]: list(given)}
    needed = [i for i in places if not row.schema.arguments[i].type.is_optional]
    if not len(needed) <= len(given) <= len(places):
        rule = f"writes {len(places)} outputs"
        raise ArgumentTypeError(row.name, rule, len(given), hint=f"its prototype: {row.schema}")
    return dict(zip(places if len(given) == len(places) else places[: len(given)], given, strict=True))


def _attributes(row: Row, given: Sequence[tuple[Argument, Any]], fixed: Mapping[str, Any]) -> dict[int, Any]:
    places = {_plain(a.name): i for i, a in row.schema.attributes()}
    found: dict[int, Any] = {}
    unnamed = []
    for argument, value in given:
        place = places.get(_plain(argument.name))
        if place is None and _MADE_UP.fullmatch(argument.name):
            unnamed.append(value)
        else:
            found[_known(row, place, argument.name)] = value
    for key, value in fixed.items():
        found[_known(row, places.get(_plain(key)), key)] = value
    rest = [i for i in places.values() if i not in found]
    if len(unnamed) > len(rest):
        rule = f"takes {len(places)} attributes"
        seen = len(unnamed) + len(found)
        raise ArgumentTypeError(row.name, rule, seen, hint=f"its prototype: {row.schema}")
    found.update(zip(rest, unnamed, strict=False))
    return found


def _known(row: Row, place: int | None, key: str) -> int:
    if place is None:
        names = ", ".join(a.name for _, a in row.schema.attributes()) or "none"
        rule = f"has no attribute {key!r}; its attributes are {names}"
        raise ArgumentValueError(row.name, rule, hint=f"its prototype: {row.schema}")
    return place


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _check_missing(row: Row, found: dict[int, Any]) -> None:
    for i, argument in row.schema.attributes():
        if found[i] is None and not argument.type.is_optional:
            if argument.name not in DEFAULTS:
                rule = f"needs the attribute {argument.name!r}"
                hint = f"add_prim_attr({argument.name!r}, value); its prototype: {row.schema}"
                raise ArgumentTypeError(row.name, rule, hint=hint)
            found[i] = DEFAULTS[argument.name]
