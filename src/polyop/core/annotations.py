"""The signature of an operator in Python: names, defaults and annotations, from its schema."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Final, TypeVar

from .schema import MISSING, Argument, Schema, Type

Tensor = TypeVar("Tensor")
"""A tensor or array. All of one call are of one framework."""

PYTHON_TYPES: Final[dict[str, Any]] = {
    "int": int,
    "SymInt": int,
    "float": float,
    "bool": bool,
    "str": str,
    "complex": complex,
    "Scalar": complex,
    "Tensor": Tensor,
}
"""The annotation of a value of a schema's base type; ``Any`` for the others."""


def annotation(type_: Type, sequence: Any = Sequence, tensor: Any = Tensor) -> Any:
    """Return the annotation of a value, with ``sequence`` for a list and ``tensor`` for a tensor.

    >>> annotation(Type("int", ("[2]", "?"))), annotation(Type("Tensor"))
    (collections.abc.Sequence[int] | None, ~Tensor)
    """
    value: Any = tensor if type_.is_tensor else PYTHON_TYPES.get(type_.base, Any)
    for suffix in type_.suffixes:
        value = value | None if suffix == "?" else sequence[value]
    return value


def signature(schema: Schema) -> inspect.Signature:
    """Return the signature of a call that returns what the schema says.

    >>> from polyop.core.parse import parse
    >>> print(signature(parse("doc::f(Tensor x, *, float a=1.0) -> Tensor")))
    (x: ~Tensor, *, a: float = 1.0) -> ~Tensor
    """
    return inspect.Signature([_parameter(one) for one in schema.arguments], return_annotation=_result(schema))


def _parameter(argument: Argument) -> inspect.Parameter:
    kind = (
        inspect.Parameter.KEYWORD_ONLY if argument.keyword_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
    )
    default = inspect.Parameter.empty if argument.default is MISSING else argument.default
    return inspect.Parameter(argument.name, kind, default=default, annotation=annotation(argument.type))


def _result(schema: Schema) -> Any:
    tensor = Tensor if schema.tensor_positions else Any  # no argument says which framework's tensor it is
    values = [annotation(one.type, list, tensor) for one in schema.returns]
    if len(values) == 1:
        return values[0]
    return tuple[tuple(values)] if values else None  # type: ignore[misc]
