"""From PyTorch's schema of an operator to ours."""

from __future__ import annotations

import dataclasses
import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...core.errors import SchemaError, UnsupportedError
from ...core.parse import parse
from ...core.schema import MISSING, Argument, Return, Schema, Type

_PARTS = re.compile(r"(?P<name>[\w:]+)(?:\.(?P<overload>\w+))?\((?P<arguments>.*)\) -> (?P<returns>.*)")
_RETURN = re.compile(r"Tensor(?:\((?P<alias>\w!)\))?(?P<list>\[\])?(?: \w+)?")
_VIEW = re.compile(r"(?<=Tensor)\([a-z](?:\|[a-z])*(?: -> [a-z*|]+)?\)")
_ARGUMENT_NAME = re.compile(r" ([a-z]\w*)(?=[,=]|$)")

_ENUMERATORS: Mapping[str, Mapping[int, str]] = {  # numbers that stand in PyTorch's schemas as defaults
    "ScalarType": {0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32",
                   7: "float64", 9: "complex64", 10: "complex128", 11: "bool", 15: "bfloat16"},
    "MemoryFormat": {0: "contiguous_format", 1: "preserve_format", 2: "channels_last"},
    "Layout": {0: "strided"},
}  # fmt: skip


@dataclass(frozen=True)
class Signature:
    """Our schema of an operator of PyTorch.

    ``repeats`` says for the position of an ``int[N]`` how often a single number is repeated:
    that is all PyTorch means by N, so in our schema the list has any length.
    """

    schema: Schema
    repeats: Mapping[int, int]


def signature(theirs: Any) -> Signature:
    """Return our schema of a schema object of PyTorch.

    A result that is a view there is a new tensor in ours, as only PyTorch can express a view;
    names that are Python keywords get a ``_``. Raises ``UnsupportedError`` for types that no
    other framework has.
    """
    text = _VIEW.sub("", str(theirs))
    parts = _PARTS.fullmatch(text)
    if parts is None:
        raise _unsupported(theirs, "has a schema in no form that is known")
    returns = tuple(_result(theirs, item) for item in _items(parts["returns"]))
    if len(returns) > 1 and any(result.type.is_list for result in returns):
        raise _unsupported(theirs, "returns a list beside other results")
    arguments = _ARGUMENT_NAME.sub(
        lambda name: f"{name[0]}_" if keyword.iskeyword(name[1]) else name[0], parts["arguments"]
    )
    try:
        parsed = parse(f"{parts['name']}({arguments}) -> ()")
    except SchemaError as problem:
        rule = str(problem).splitlines()[0].removeprefix("schema: ").split("; ")[0]
        raise _unsupported(theirs, f"has a schema that {rule}") from None
    repeats = {}
    for position, argument in parsed.attributes():
        size = re.search(r"\[(\d+)\]", str(argument.type))
        if size:
            repeats[position] = int(size[1])
    schema = dataclasses.replace(
        parsed,
        arguments=tuple(map(_loosened, parsed.arguments)),
        returns=returns,
        overload=parts["overload"] or "",
    )
    return Signature(schema, repeats)


def _items(returns: str) -> list[str]:
    return [item for item in re.sub(r"^\((.*)\)$", r"\1", returns).split(", ") if item]


def _result(theirs: Any, text: str) -> Return:
    match = _RETURN.fullmatch(text)
    if match is None:
        raise _unsupported(theirs, f"returns {text}, and an operator of polyop returns tensors")
    return Return(Type("Tensor", ("[]",) if match["list"] else (), match["alias"] or ""))


def _loosened(argument: Argument) -> Argument:
    suffixes = tuple("[]" if suffix != "?" else suffix for suffix in argument.type.suffixes)
    default = argument.default
    if type(default) is int and argument.type.base in _ENUMERATORS:
        default = _ENUMERATORS[argument.type.base].get(default, MISSING)
    kind = dataclasses.replace(argument.type, suffixes=suffixes)
    return dataclasses.replace(argument, type=kind, default=default)


def _unsupported(theirs: Any, rule: str) -> UnsupportedError:
    name = f"{theirs.name}.{theirs.overload_name}".rstrip(".")
    return UnsupportedError(name, rule, hint=f"call torch.ops.{name.replace('::', '.')} on PyTorch's tensors")
