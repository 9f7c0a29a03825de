"""``polyop inspect`` of libraries that have a table: C++ operator modules, and operators by schema."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from .. import _core
from ..core.errors import PolyopError
from ..define.library_load import checked_rows
from ..kernels.library import open_library
from ..kernels.library_file import LibraryFile
from ..kernels.module.library import ENTRY as MODULE
from ..kernels.module.library import VERSION
from ..kernels.module.registrations import ENTRY as LIBRARY
from ..kernels.module.registrations import Row, open_rows


def has_table(file: LibraryFile) -> bool:
    """Return whether the library is an operator module, or has operators by schema."""
    return MODULE in file.functions or LIBRARY in file.functions


def print_tables(file: LibraryFile, facts: Iterable[tuple[str, str]]) -> int:
    """Print the facts of a library and what is in its tables; return 0, or 1 for one that cannot be loaded.

    The library is opened for it; no operator is called.
    """
    for label, text in facts:
        if label != "contract":  # that of kernels without a table
            _line(label, text)
    shown = [show for entry, show in ((MODULE, _module), (LIBRARY, _library)) if entry in file.functions]
    return max(show(file) for show in shown)


def _line(label: str, text: str) -> None:
    print(f"{label + ':':<13} {text}")


def _module(file: LibraryFile) -> int:
    try:
        entry = _core.find_symbol(open_library(file.path), MODULE)
    except PolyopError as problem:
        return _failed(problem)
    version, name, broken, rows = _core.module_table(entry)
    _line("module", f"{name or 'unknown'}, contract version {version} (this polyop: {VERSION})\n")
    for _, function, signature, _ in rows:
        print(f"{name}.{function}{signature}")
    if broken:
        return _failed(broken)
    return int(version != VERSION)


def _library(file: LibraryFile) -> int:
    try:
        entry = _core.find_symbol(open_library(file.path), LIBRARY)
        _line("ABI version", f"{_core.module_table(entry)[0]} (this polyop: {VERSION})")
        rows = open_rows(file.path)
    except PolyopError as problem:
        return _failed(problem)
    for row in rows:
        if row.kind == "library":
            _line("namespace", f"{row.name}  ({row.place})")
    schemas = [row for row in rows if row.kind == "schema"]
    for namespace in dict.fromkeys(row.namespace for row in schemas):
        print()
        for row in schemas:
            if row.namespace == namespace:
                print(f"{_schema(row)}  [{_keys(row, rows)}]")
    try:
        checked_rows(rows, file.path, {})
    except PolyopError as problem:
        return _failed(problem)
    return 0


def _schema(row: Row) -> str:
    """Return the text of ``m.def`` with its namespace."""
    return row.text if "::" in row.text.partition("(")[0] else f"{row.namespace}::{row.text}"


def _keys(schema: Row, rows: Iterable[Row]) -> str:
    """Return the keys that have a function, in the order of the sources."""
    keys = [row.key for row in rows if row.kind == "implementation" and row.name == schema.name]
    return ", ".join(dict.fromkeys(keys)) or "no functions"


def _failed(problem: object) -> int:
    sys.stdout.flush()
    print(problem, file=sys.stderr)
    return 1
