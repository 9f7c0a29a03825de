"""Turn a module's description of a function into a schema and the kinds of its C++ parameters."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass

from ...core.dtypes import dtype_of_type_id
from ...core.errors import LibraryError, SchemaError
from ...core.parse import parse
from ...core.schema import Argument, Schema, Type

TENSOR, LIST, NESTED, VALUE = "t", "l", "n", "a"  # letters that the native core knows

_TENSOR = r"Tensor(\([a-z]+!\))?"
_RETURNS_TENSORS = re.compile(rf"\(\)|{_TENSOR}|Tensor\[\]|\({_TENSOR}(, {_TENSOR})*\)|object")


@dataclass(frozen=True)
class ModuleSignature:
    """A function's signature.

    ``schema`` is that of the operator; for a function that is no operator (``is_plain``) only its
    arguments mean something. ``kinds`` has a letter for each C++ parameter. Schemas have no lists of lists
    of tensors: one is passed flat, and ``rows`` maps it to a further argument with the lists' lengths.
    """

    schema: Schema
    kinds: str
    rows: dict[str, str]
    unpacks: bool
    is_plain: bool

    @property
    def parameters(self) -> tuple[Argument, ...]:
        """The arguments that are C++ parameters, in order."""
        return self.schema.arguments[: len(self.kinds)]


def read_signature(namespace: str, name: str, text: str) -> ModuleSignature:
    """Return the signature from a text like ``(Tensor x, int n=2) -> Tensor``, which the module exports.

    >>> read_signature("ops", "f", "(Tensor x, Tensor[][] y) -> object").schema.signature
    '(Tensor x, Tensor[] y, *, int[] y_rows) -> Tensor[]'

    Raises ``LibraryError`` for a name or a type that an operator cannot have.
    """
    arguments, _, returns = text.rpartition(" -> ")
    tensors = _RETURNS_TENSORS.fullmatch(returns) is not None
    nested = re.findall(r"Tensor\[\]\[\] (\w+)", arguments)
    flat = arguments.replace("Tensor[][]", "Tensor[]")
    shown = "Tensor[]" if returns == "object" else returns if tensors else "()"
    try:
        schema = parse(f"{namespace}::{name}{flat} -> {shown}")
    except SchemaError as problem:
        rule = "this function cannot be an operator"
        raise LibraryError(f"{namespace}.{name}{arguments}", rule, hint=str(problem)) from None
    schema = dataclasses.replace(schema, arguments=tuple(map(_named_dtype, schema.arguments)))
    kinds = "".join(_kind(argument, nested) for argument in schema.arguments)
    rows = {argument: f"{argument}_rows" for argument in nested}
    row_lengths = tuple(Argument(r, Type("int", ("[]",)), keyword_only=True) for r in rows.values())
    schema = dataclasses.replace(schema, arguments=schema.arguments + row_lengths)
    plain = not tensors or not schema.tensor_positions
    return ModuleSignature(schema, kinds, rows, returns == "object", plain)


def kinds_of(schema: Schema) -> str:
    """Return a letter for each argument, which tells the native core how to pass it."""
    return "".join(_kind(argument, []) for argument in schema.arguments)


def _named_dtype(argument: Argument) -> Argument:
    """Return the argument with a dtype's name as its default: modules have MindSpore's numbers."""
    default = dtype_of_type_id(argument.default) if argument.type.base == "ScalarType" else None
    return argument if default is None else dataclasses.replace(argument, default=default.name)


def _kind(argument: Argument, nested: list[str]) -> str:
    if not argument.type.is_tensor:
        return VALUE
    if argument.name in nested:
        return NESTED
    return LIST if argument.type.is_list else TENSOR
