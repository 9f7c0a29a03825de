"""``polyop inspect --open``: show the operators that a library registers when it is opened."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from .. import _core
from ..binary import elsewhere
from ..binary.elf import LibraryFile, read
from ..binary.elsewhere import Opened
from ..binary.open import open_library
from ..core.errors import PolyopError, one_line
from ..define.library.load import checked_rows
from ..kernels.module.function_table import ENTRY as MODULE
from ..kernels.module.function_table import VERSION
from ..kernels.module.registrations import ENTRY as LIBRARY
from ..kernels.module.registrations import Row, open_rows
from ..providers.aten.registered import registers_in_torch, torch_operators
from .terminal import fact, say

_PROGRAM = "from polyop.cli.inspect_tables import print_tables; sys.exit(print_tables(sys.argv[1]))"


def has_tables(file: LibraryFile) -> bool:
    """Return whether a library registers operators when it is opened."""
    return MODULE in file.functions or LIBRARY in file.functions or registers_in_torch(file)


def show_opened(path: Path) -> int:
    """Print what a library registers; return 0, or 1 if it cannot be loaded. Raises as below."""
    opened = open_elsewhere(path)
    say(opened.output, end="", flush=True)
    say(opened.errors, end="", file=sys.stderr)
    return opened.code


def open_elsewhere(path: Path) -> Opened:
    """Return what a library registers, as text. Another process opens it, and no operator is called.

    Raises what ``binary.elsewhere.open_elsewhere`` raises.
    """
    return elsewhere.open_elsewhere(path, _PROGRAM, "without --open none of its code runs")


def print_tables(path: str) -> int:
    """Open the library and print what it registers; return 0, or 1 if it cannot be loaded."""
    file = read(path)
    code = 0
    for is_there, show in (
        (MODULE in file.functions, _module),
        (LIBRARY in file.functions, _library),
        (registers_in_torch(file), _torch),
    ):
        if is_there:
            try:
                code |= show(file)
            except PolyopError as problem:
                code |= _failed(problem)
    return code


def _module(file: LibraryFile) -> int:
    entry = _core.find_symbol(open_library(file.path), MODULE)
    version, name, broken, rows = _core.module_table(entry)
    fact("module", f"{name or 'unknown'}, contract version {version} (this polyop: {VERSION})")
    say()
    for _, function, signature, _ in rows:
        say(one_line(f"{name}.{function}{signature}"))
    if broken:
        return _failed(broken)
    return int(version != VERSION)


def _library(file: LibraryFile) -> int:
    entry = _core.find_symbol(open_library(file.path), LIBRARY)
    fact("ABI version", f"{_core.module_table(entry)[0]} (this polyop: {VERSION})")
    rows = open_rows(file.path)
    for row in rows:
        if row.kind == "library":
            fact("namespace", f"{row.name}  ({row.place})")
    schemas = [row for row in rows if row.kind == "schema"]
    for namespace in dict.fromkeys(row.namespace for row in schemas):
        say()
        for row in schemas:
            if row.namespace == namespace:
                say(one_line(f"{_schema(row)}  [{_keys(row, rows)}]"))
    checked_rows(rows, file.path, {})
    return 0


def _torch(file: LibraryFile) -> int:
    operators = torch_operators(file.path)
    say()
    for name, schema, keys in operators:
        say(f"{schema or f'{name} (no schema)'}  [{', '.join(keys) or 'no functions'}]")
    if not operators:
        say("it registers no operators in PyTorch")
    return 0


def _schema(row: Row) -> str:
    """Return the schema text of ``m.def``, with the namespace."""
    return row.text if "::" in row.text.partition("(")[0] else f"{row.namespace}::{row.text}"


def _keys(schema: Row, rows: Iterable[Row]) -> str:
    """Return the keys that have a function, in the order of the sources."""
    keys = [row.key for row in rows if row.kind == "implementation" and row.name == schema.name]
    return ", ".join(dict.fromkeys(keys)) or "no functions"


def _failed(problem: object) -> int:
    sys.stdout.flush()
    say(problem, file=sys.stderr)
    return 1
