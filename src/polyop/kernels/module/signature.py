"""From the text that a module gives of a function to a schema, and how its parameters are passed."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass

from ...core.dtypes import dtype_of_type_id
from ...core.errors import LibraryError, SchemaError
from ...core.parse import parse
from ...core.schema import Argument, Schema, Type

TENSOR, LIST, NESTED, VALUE = "t", "l", "n", "a"  # letters that the native core knows

_TENSOR = r"Tensor(\([a-z]!\))?"
_RETURNS_TENSORS = re.compile(rf"\(\)|{_TENSOR}|Tensor\[\]|\({_TENSOR}(, {_TENSOR})*\)|object")


@dataclass(frozen=True)
class ModuleSignature:
    """A function's signature.

    ``schema`` is that of the operator; of a function without tensors (``is_plain``) only its
    arguments count. ``kinds`` has a letter for each C++ parameter. ``rows`` maps a list of lists
    of tensors to the argument that holds the lengths of its lists: schemas have none of depth 2.
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
    """Return the signature of ``(Tensor x, int n=2) -> Tensor``; the text is the module's own.

    >>> read_signature("ops", "f", "(Tensor x, Tensor[][] y) -> object").schema.signature
    '(Tensor x, Tensor[] y, *, int[] y_rows) -> Tensor[]'

    Raises ``LibraryError`` for a name or a type that no operator has.
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
    more = tuple(Argument(r, Type("int", ("[]",)), keyword_only=True) for r in rows.values())
    schema = dataclasses.replace(schema, arguments=schema.arguments + more)
    plain = not tensors or not schema.tensor_positions
    return ModuleSignature(schema, kinds, rows, returns == "object", plain)


def kinds_of(schema: Schema) -> str:
    """Return a letter for each argument: how the native core passes it."""
    return "".join(_kind(argument, []) for argument in schema.arguments)


def _named_dtype(argument: Argument) -> Argument:
    """Return the argument with the name of a dtype for its number: modules give numbers."""
    found = dtype_of_type_id(argument.default) if argument.type.base == "ScalarType" else None
    return argument if found is None else dataclasses.replace(argument, default=found.name)


def _kind(argument: Argument, nested: list[str]) -> str:
    if not argument.type.is_tensor:
        return VALUE
    if argument.name in nested:
        return NESTED
    return LIST if argument.type.is_list else TENSOR
