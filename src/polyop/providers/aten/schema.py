"""Translates the schema of a PyTorch operator to polyop's."""

from __future__ import annotations

import dataclasses
import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...core.dtypes import DTYPES
from ...core.errors import SchemaError, UnsupportedError
from ...core.parse import parse
from ...core.schema import MISSING, Argument, Return, Schema, Type, alias_names
from ...core.texts import first_line

_PARTS = re.compile(r"(?P<name>[\w:]+)(?:\.(?P<overload>\w+))?\((?P<arguments>.*)\) -> (?P<returns>.*)")
_RETURN = re.compile(r"Tensor(?:\((?P<alias>\w+!)\))?(?P<list>\[\])?\??(?: \w+)?")
_VALUE = re.compile(
    r"(?P<base>bool|int|float|str|complex|Scalar|ScalarType|SymInt|SymBool)(?P<suffix>\[\])?(?: \w+)?"
)
_UNNAMED_ALIAS = re.compile(r"\(\$(\d+)! -> \)")  # so PyTorch prints Tensor!
_CLASS = re.compile(r"__torch__[\w.]+")
_VIEW = re.compile(r"(?<=Tensor)\([a-z](?:\|[a-z])*(?: -> [a-z*|]+)?\)")
_ARGUMENT_NAME = re.compile(r" ([a-z]\w*)(?=[,=]|$)")

_ENUMERATORS: Mapping[str, Mapping[int, str]] = {  # defaults in PyTorch's schemas are numbers
    "ScalarType": {row.torch: row.name for row in DTYPES if row.torch >= 0},
    "MemoryFormat": {0: "contiguous_format", 1: "preserve_format", 2: "channels_last"},
    "Layout": {0: "strided"},
}


SCALAR_TYPES = _ENUMERATORS["ScalarType"]
"""The names of PyTorch's dtypes by number."""


@dataclass(frozen=True)
class Signature:
    """The polyop schema of a PyTorch operator.

    ``repeats`` maps the position of an ``int[N]`` argument to N. In PyTorch N says only how often a
    single number is repeated, so in the schema the list may have any length. ``result_kinds`` has the kind of
    each result, if any is no tensor, or a list beside others. The schema then has the tensors alone, as one
    list if there is a list; if there are no tensors it has the results.
    """

    schema: Schema
    repeats: Mapping[int, int]
    result_kinds: tuple[str, ...] = ()


def signature(torch_schema: Any) -> Signature:
    """Return the polyop schema for a schema object of PyTorch.

    A result that is a view becomes a new tensor, because only PyTorch can express a view. A name
    that is a Python keyword gets a trailing ``_``. Raises ``UnsupportedError`` for types that only
    PyTorch has.
    """
    text = _VIEW.sub("", str(torch_schema))
    classes = _CLASS.search(text)
    if classes is not None:
        raise _unsupported(torch_schema, f"has {classes[0]}, a class of TorchScript, which only PyTorch has")
    used = set(re.findall(r"\(([a-z]+)!", text))
    names = [name for name, _ in zip((n for n in alias_names() if n not in used), range(64), strict=False)]
    text = _UNNAMED_ALIAS.sub(lambda alias: f"({names[int(alias[1]) % 64]}!)", text)
    parts = _PARTS.fullmatch(text)
    if parts is None:
        raise _unsupported(torch_schema, "has a schema of an unknown form")
    result_kinds, returns = _results(torch_schema, parts["returns"])
    arguments = _ARGUMENT_NAME.sub(
        lambda name: f"{name[0]}_" if keyword.iskeyword(name[1]) else name[0],
        _with_names(torch_schema, parts["arguments"]),
    )
    try:
        parsed = parse(f"{parts['name']}({arguments}) -> ()")
    except SchemaError as problem:
        rule = first_line(problem).removeprefix("schema: ").split("; ")[0]
        raise _unsupported(torch_schema, f"has a schema that {rule}") from None
    repeats = {}
    for position, argument in parsed.attributes():
        size = re.search(r"\[(\d+)\]", str(argument.type))
        if size:
            repeats[position] = int(size[1])
    schema = dataclasses.replace(
        parsed,
        arguments=tuple(map(_without_sizes, parsed.arguments)),
        returns=returns,
        overload=parts["overload"] or "",
    )
    return Signature(schema, repeats, result_kinds)


def _with_names(torch_schema: Any, arguments: str) -> str:
    """Return the text of arguments with a name for each that has none, as PyTorch prints some."""
    if all(argument.name for argument in torch_schema.arguments):
        return arguments
    used, texts = {argument.name for argument in torch_schema.arguments}, []
    rows = iter(torch_schema.arguments)
    for number, text in enumerate(re.split(r",\s*(?![^\[(]*[\])])", arguments)):
        named = text.strip() == "*" or next(rows).name
        name = next(n for n in (f"arg{number}", f"arg{number}_") if n not in used)
        texts.append(text if named else f"{text.strip()} {name}")
    return ", ".join(texts)


def _results(torch_schema: Any, text: str) -> tuple[tuple[str, ...], tuple[Return, ...]]:
    """Return the kind of each result of PyTorch, and the returns of the schema."""
    items = _items(text)
    values = [_VALUE.fullmatch(item) for item in items]
    if not any(values):
        returns = tuple(_result(torch_schema, item) for item in items)
        if len(returns) == 1 or not any(result.type.is_list for result in returns):
            return (), returns
    kinds = [
        Type(value["base"].replace("SymBool", "bool"), ("[]",) if value["suffix"] else ())
        if value
        else _result(torch_schema, item).type
        for value, item in zip(values, items, strict=True)
    ]
    if any(kind.alias for kind in kinds):
        raise _unsupported(torch_schema, "returns a written argument beside a list or a Python value")
    result_kinds = tuple(map(str, kinds))
    tensors = tuple(Return(kind) for kind in kinds if kind.is_tensor)
    if any(result.type.is_list for result in tensors):
        tensors = (Return(Type("Tensor", ("[]",))),)
    return result_kinds, tensors or tuple(map(Return, kinds))


def _items(returns: str) -> list[str]:
    return [item for item in re.sub(r"^\((.*)\)$", r"\1", returns).split(", ") if item]


def _result(torch_schema: Any, text: str) -> Return:
    match = _RETURN.fullmatch(text)
    if match is None:
        raise _unsupported(torch_schema, f"returns {text}, which only PyTorch has")
    return Return(Type("Tensor", ("[]",) if match["list"] else (), match["alias"] or ""))


def _without_sizes(argument: Argument) -> Argument:
    suffixes = tuple("[]" if suffix != "?" else suffix for suffix in argument.type.suffixes)
    default = argument.default
    if type(default) is int and argument.type.base in _ENUMERATORS:
        default = _ENUMERATORS[argument.type.base].get(default, MISSING)
    kind = dataclasses.replace(argument.type, suffixes=suffixes)
    return dataclasses.replace(argument, type=kind, default=default)


def _unsupported(torch_schema: Any, rule: str) -> UnsupportedError:
    name = f"{torch_schema.name}.{torch_schema.overload_name}".rstrip(".")
    return UnsupportedError(name, rule, hint=f"call torch.ops.{name.replace('::', '.')} on PyTorch's tensors")
