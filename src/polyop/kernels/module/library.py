"""Read the table of functions that a C++ module exports."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ... import _core
from ...binary.elf import python_modules, read
from ...binary.open import open_library
from ...core.errors import LibraryError
from .signature import ModuleSignature, read_signature

ENTRY = "polyop_module"
VERSION = 1
"""The version of the module contract; equal to POLYOP_MODULE_VERSION in module_abi.h."""


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
