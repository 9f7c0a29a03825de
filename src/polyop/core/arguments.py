"""Bind the arguments of a call to a schema, and convert attributes to the schema's types."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .dtypes import dtype
from .errors import ArgumentTypeError
from .limits import shown
from .schema import MISSING, Argument, Schema
from .texts import did_you_mean


def bind(
    schema: Schema, args: Sequence[Any], kwargs: Mapping[str, Any], where: Any = None
) -> tuple[Any, ...]:
    """Return one value per argument of the schema, with defaults for the missing ones.

    Raises ``ArgumentTypeError`` for too many, missing, unknown or repeated arguments. ``where`` is the place
    in the error at which the operator was defined.
    """
    arguments = schema.arguments
    subject = schema.qualified_name
    positional = sum(not argument.keyword_only for argument in arguments)
    if len(args) > positional:
        rule = f"takes {positional} positional argument{'s' * (positional != 1)} {schema.signature}"
        raise ArgumentTypeError(subject, rule, f"{len(args)}", where=where)
    if not kwargs and len(args) == len(arguments):
        return tuple(args)
    names = {argument.name for argument in arguments}
    for name in kwargs:
        if name not in names:
            rule, hint = f"has no argument {name!r} {schema.signature}", did_you_mean(name, names)
            raise ArgumentTypeError(subject, rule, where=where, hint=hint)
    values = list(args)
    for argument in arguments[: len(args)]:
        if argument.name in kwargs:
            raise ArgumentTypeError(subject, f"argument {argument.name!r} was given twice", where=where)
    for argument in arguments[len(args) :]:
        value = kwargs.get(argument.name, argument.default)
        if value is MISSING:
            rule = f"needs argument {argument.name!r} {schema.signature}"
            seen = f"{len(args)} argument{'s' * (len(args) != 1)}"
            raise ArgumentTypeError(subject, rule, seen, where=where)
        values.append(value)
    return tuple(values)


_INT64 = range(-(2**63), 2**63)


def _no_tensor(value: Any) -> Any:
    # a tensor as an attribute would lose its gradient, and reading it would wait for its device
    if hasattr(value, "shape") and not isinstance(value, np.generic):
        raise TypeError
    return value


def _int(value: Any) -> int:
    number = operator.index(_no_tensor(value))
    if number not in _INT64:
        raise ValueError
    return number


def _size(value: Any) -> Any:
    # PyTorch's symbolic sizes stay symbols: int() would silently specialise the traced program
    return value if hasattr(value, "node") and hasattr(value, "__index__") else _int(value)


def _float(value: Any) -> float:
    if isinstance(value, (str, bytes)):
        raise TypeError
    return float(_no_tensor(value))


def _bool(value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError
    return bool(value)


def _str(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    text: str = str.__str__(value)  # the plain text of a subclass, such as an enum
    text.encode()  # raises ValueError for lone surrogates, which have no UTF-8
    return text


def _number(value: Any) -> Any:
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    return _int(value) if hasattr(value, "__index__") else _float(value)


def _unknown(_: Any) -> Any:
    raise TypeError


_CONVERT = {  # base type of an attribute -> its conversion, which raises TypeError or ValueError
    "int": _int,
    "SymInt": _size,
    "float": _float,
    "bool": _bool,
    "str": _str,
    "Scalar": _number,
    "complex": complex,
    "ScalarType": lambda value: dtype(value).name,
    "Device": str,
    "Layout": str,
    "MemoryFormat": str,
}


_SAMPLES: dict[str, Any] = {"bool": True, "int": 1, "float": 1.0, "str": ""}


def check_kinds(schema: Schema, args: Sequence[str], kwargs: Mapping[str, str], where: Any) -> None:
    """Check a call of which only the kinds of the values are known, as ``signature_of`` returns them.

    Raises ``ArgumentTypeError`` as ``bind`` does, and for an attribute of the wrong type.
    """
    for argument, kind in zip(schema.arguments, bind(schema, args, kwargs, where), strict=True):
        passed = argument.name in kwargs or kind is not argument.default
        if not passed or kind not in _SAMPLES or argument.type.suffixes or argument.type.base not in _CHECKED:
            continue
        try:
            _convert(_SAMPLES[kind], _CONVERT[argument.type.base], [], False)
        except TypeError:
            subject = f"{schema.qualified_name}: argument {argument.name}"
            rule, seen = f"must be {argument.type}", f"a value of type {kind}"
            raise ArgumentTypeError(subject, rule, seen, where=where) from None


_CHECKED = ("int", "SymInt", "float", "bool", "str", "Scalar")
_TENSOR_HINT = (
    "an attribute is a constant, no tensor: give a plain value, and where a program is traced mark it "
    "static (static_argnames of jax.jit, functools.partial)"
)


def attribute(argument: Argument, value: Any, subject: str, where: Any = None) -> Any:
    """Return an attribute's value converted to its schema type: plain Python values, lists as tuples.

    Raises ``ArgumentTypeError`` that names the argument, and ``where`` the operator was defined.
    """
    if value is None and argument.type.is_optional:
        return None
    convert = _CONVERT.get(argument.type.base, _unknown)
    lists = [suffix for suffix in argument.type.suffixes if suffix != "?"]
    try:
        return _convert(value, convert, lists, argument.type.suffixes[:1] == ("?",))
    except (TypeError, ValueError, OverflowError):  # OverflowError: an int beyond float64
        rule = f"must be {argument.type}"
        seen = f"{shown(value)} ({type(value).__name__})"
        hint = _TENSOR_HINT if hasattr(value, "shape") and hasattr(value, "dtype") else None
        subject = f"{subject}: argument {argument.name}"
        raise ArgumentTypeError(subject, rule, seen, where=where, hint=hint) from None


def _convert(value: Any, convert: Any, lists: list[str], optional_items: bool) -> Any:
    if not lists:
        return None if value is None and optional_items else convert(value)
    if not isinstance(value, (list, tuple)):
        size = lists[-1][1:-1]
        if size and not isinstance(value, (str, dict, set)):  # int[2] takes 3 for [3, 3]
            return (convert(value),) * int(size)
        raise TypeError
    items = tuple(_convert(item, convert, lists[:-1], optional_items) for item in value)
    if lists[-1] != "[]" and len(items) != int(lists[-1][1:-1]):
        raise TypeError
    return items


def attributes(schema: Schema, values: Sequence[Any], where: Any = None) -> dict[str, Any]:
    """Return the attributes among bound values by name, converted to their schema types."""
    subject = schema.qualified_name
    return {a.name: attribute(a, values[i], subject, where) for i, a in schema.attributes()}
