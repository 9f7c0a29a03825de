"""Read the table of functions that a C++ module exports: the schema and the parameters of each."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from pathlib import Path

from ... import _core
from ...binary.elf import python_modules, read
from ...binary.open import open_library
from ...core.dtypes import dtype_of_type_id
from ...core.errors import LibraryError, SchemaError
from ...core.parse import parse
from ...core.schema import Argument, Schema, Type

ENTRY = "polyop_module"
VERSION = 1
"""The version of the module contract; equal to POLYOP_MODULE_VERSION in module_abi.h."""

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


@dataclass(frozen=True)
class ModuleFunction:
    """One bound function."""

    name: str
    address: int
    doc: str
    signature: ModuleSignature


def open_module(path: Path, name: str) -> tuple[ModuleFunction, ...]:
    """Return the functions of the module at ``path``, which must call itself ``name``.

    Raises ``LibraryError`` for a library that is no module, was built against another contract,
    or has a function that cannot be an operator.
    """
    hint = "write PYBIND11_MODULE(MS_EXTENSION_NAME, m) { m.def(...); } in one of the sources"
    own_name, rows = read_table(path, ENTRY, f"module {name}", hint)
    if own_name != name:
        rule = f"its PYBIND11_MODULE must be called {name}"
        hint = "write PYBIND11_MODULE(MS_EXTENSION_NAME, m): the builder fills the name in"
        raise LibraryError(f"module {name}", rule, own_name, where=path, hint=hint)
    return tuple(
        ModuleFunction(function, address, doc, read_signature(name, function, text))
        for address, function, text, doc in rows
    )


def read_table(
    path: Path, entry: str, subject: str, hint: str
) -> tuple[str, tuple[tuple[int, str, str, str], ...]]:
    """Return the name in a library's table and its rows: (address, name, schema, doc).

    ``entry`` is the symbol of the function that returns the table. Raises ``LibraryError`` if the library
    lacks it, was built against another version of the contract, or could not fill its table.
    """
    library = open_library(path)
    address = _core.find_symbol(library, entry)
    if not address:
        if entry != ENTRY and python_modules(read(path)):
            rule = "is a Python module: the functions of a PYBIND11_MODULE have no schema"
            hint = "register them beside it: TORCH_LIBRARY(namespace, m) { m.def(schema, &function); }"
            raise LibraryError(str(path), rule, hint=hint)
        kind = "no operator module: it binds no functions" if entry == ENTRY else "no operator library"
        raise LibraryError(str(path), f"is {kind}", hint=hint)
    version, name, problem, rows = _core.module_table(address)
    if version != VERSION:
        rule = f"must be built against version {VERSION} of polyop's module contract"
        raise LibraryError(str(path), rule, f"version {version}", hint="build the module again")
    if problem is not None:
        raise LibraryError(subject, problem, where=path)
    return name, rows
