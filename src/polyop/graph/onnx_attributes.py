"""Convert arguments of an operator to inputs and attributes of an ONNX node, and back.

============================== ================================================================
argument                       on the node
============================== ================================================================
``Tensor``                     an input
``Tensor?``                    an input or none; the attribute of the same name is 1 or 0
``Tensor[]``                   several inputs; the attribute of the same name is their number
``int``, ``SymInt``, ``bool``  INT; INTS for a list
``float``, ``Scalar``          FLOAT; FLOATS for a list; a float64 tensor if 32 bits are too few
``str``, ``ScalarType``        STRING; a tensor of strings for a list
None                           no attribute
============================== ================================================================

Inputs are in the order of the schema, without the absent ones.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from ..call.operator import Operator
from ..core.arguments import attribute
from ..core.dtypes import dtype
from ..core.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from ..core.limits import shown
from ..core.schema import MISSING, Argument

_BASES = {"int", "SymInt", "bool", "float", "Scalar", "str", "ScalarType"}
_HINTS = {"complex": "pass the real and the imaginary part as two floats"}


def refusal(operator: Operator) -> UnsupportedError | None:
    """Return the error with the reason why ONNX cannot hold calls of an operator, or None if it can."""
    for argument in operator.schema.arguments:
        rule, hint = _rule(argument)
        if rule is not None:
            return _error(operator, f"argument {argument.name}", rule, argument.type, hint)
    if operator.schema.returns_list:
        rule = "a node of ONNX has a fixed number of outputs"
        return _error(operator, "results", rule, "a list", "return the tensors one by one")
    return None


def _rule(argument: Argument) -> tuple[str | None, str | None]:
    type_ = argument.type
    lists = [suffix for suffix in type_.suffixes if suffix != "?"]
    if type_.writes:
        return "values of an ONNX graph are never written in place", "return the new value"
    if type_.is_tensor:
        nested = len(lists) > 1 or (type_.suffixes[:1] == ("?",) and bool(lists))
        rule = "ONNX inputs are tensors, optional tensors and lists of tensors"
        return (rule if nested else None), None
    if type_.base not in _BASES:
        rule = "ONNX attributes are ints, floats, bools, strings and lists of these"
        return rule, _HINTS.get(type_.base)
    if len(lists) > 1:
        return "ONNX attributes are at most lists of values", "pass it flat, with the number of columns"
    if lists and type_.suffixes[:1] == ("?",):
        return "a list attribute of ONNX has no None in it", None
    return None, None


def _error(operator: Operator, what: str, rule: str, seen: object, hint: str | None) -> UnsupportedError:
    return UnsupportedError(f"{operator.name}: {what}", rule, seen, where=operator.origin, hint=hint)


def names(operator: Operator) -> tuple[str, ...]:
    """Return the names of the attributes that a node of the operator may have."""
    return tuple(a.name for a in operator.schema.arguments if not a.type.is_tensor or a.type.suffixes)


def inputs_and_attributes(operator: Operator, arguments: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the inputs of a call's node, and its attributes as Python values and NumPy arrays.

    ``arguments`` are bound; the tensors may be of any kind. Raises ``ArgumentTypeError`` for an
    attribute whose type is not the schema's, ``ArgumentValueError`` for a value that ONNX cannot hold.
    """
    inputs: list[Any] = []
    node_attributes: dict[str, Any] = {}
    for argument, value in zip(operator.schema.arguments, arguments, strict=True):
        if not argument.type.is_tensor:
            converted = _attribute(operator, argument, value)
            if converted is not None:
                node_attributes[argument.name] = converted
            continue
        tensors = list(value) if isinstance(value, (list, tuple)) else [] if value is None else [value]
        inputs += tensors
        if argument.type.suffixes:
            node_attributes[argument.name] = len(tensors)
    return inputs, node_attributes


def _attribute(operator: Operator, argument: Argument, value: Any) -> Any:
    plain = attribute(argument, value, operator.name)
    if plain is None:
        return None
    items = plain if isinstance(plain, tuple) else (plain,)
    base = argument.type.base
    if base == "Scalar" and any(isinstance(item, bool) for item in items):
        rule = "ONNX has no bool, and a Scalar does not say that 1 is one"
        _refuse_value(operator, argument, rule, plain, "say bool in the schema, or pass 1")
    if base in ("float", "Scalar") and any(isinstance(item, float) for item in items):
        return _floats(plain)
    if isinstance(plain, tuple) and base in ("str", "ScalarType"):
        return np.array(plain, dtype=object)
    return list(map(int, plain)) if isinstance(plain, tuple) else int(plain) if base == "bool" else plain


def _floats(plain: Any) -> Any:
    exact = np.asarray(plain, dtype=np.float64)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        short = exact.astype(np.float32).astype(np.float64)
    if not np.array_equal(exact, short, equal_nan=True):
        return exact
    return exact.tolist()


def _refuse_value(
    operator: Operator, argument: Argument, rule: str, seen: object, hint: str | None = None
) -> NoReturn:
    subject = f"{operator.name}: argument {argument.name}"
    raise ArgumentValueError(subject, rule, repr(seen), where=operator.origin, hint=hint)


def arguments_of(operator: Operator, node_attributes: dict[str, Any], inputs: int) -> list[Any]:
    """Return the arguments of a node: attributes in the schema's types, and 1 in place of each tensor.

    ``inputs`` is the number of its inputs. Raises ``ArgumentTypeError`` for an attribute that is
    missing or of a wrong type, and for a wrong number of inputs.
    """
    values: list[Any] = []
    count = 0
    for argument in operator.schema.arguments:
        value = _tensors(operator, argument, node_attributes, inputs) if argument.type.is_tensor else None
        if argument.type.is_tensor:
            count += len(value) if isinstance(value, list) else value is not None
        else:
            value = _read(operator, argument, node_attributes.get(argument.name, MISSING))
        values.append(value)
    if count != inputs:
        rule = f"{operator.schema.signature} takes {count} tensors with these attributes"
        raise ArgumentTypeError(operator.name, rule, f"a node with {inputs} inputs", where=operator.origin)
    return values


def _tensors(operator: Operator, argument: Argument, node_attributes: dict[str, Any], inputs: int) -> Any:
    if not argument.type.suffixes:
        return 1
    count = node_attributes.get(argument.name)
    optional = argument.type.suffixes == ("?",)
    maximum = 1 if optional else inputs
    if not isinstance(count, int) or not 0 <= count <= maximum:
        rule = f"the node must have an attribute {argument.name} that says how many inputs it takes"
        seen = "no such attribute" if count is None else f"{shown(count)} for a node with {inputs} inputs"
        raise ArgumentTypeError(operator.name, rule, seen, where=operator.origin)
    return [1] * count if not optional else 1 if count else None


def _read(operator: Operator, argument: Argument, value: Any) -> Any:
    if isinstance(value, tuple) and not value and argument.type.base in ("str", "ScalarType"):
        rule = f"the attribute {argument.name}, a list of strings, must be a TENSOR of strings"
        raise ArgumentTypeError(operator.name, rule, "STRINGS", where=operator.origin)
    if value is MISSING:
        value = None if argument.type.is_optional else argument.default
    if value is MISSING:
        rule = f"the node must have an attribute {argument.name}, {argument.type}"
        raise ArgumentTypeError(operator.name, rule, "a node without it", where=operator.origin)
    if argument.type.base == "bool" and value is not None:
        value = [_bool(item) for item in value] if isinstance(value, (list, tuple)) else _bool(value)
    return attribute(argument, value, operator.name)


def _bool(value: Any) -> Any:
    return bool(value) if isinstance(value, int) and value in (0, 1) else value


def dtype_name(value: Any) -> Any:
    """Return the name of a dtype, which the exporter passes as ONNX's number; None for -1."""
    if not isinstance(value, int):
        return value
    if value < 0:
        return None
    ir: Any = importlib.import_module("onnxscript.ir")
    return dtype(ir.DataType(value).numpy()).name
