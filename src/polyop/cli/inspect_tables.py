"""``polyop inspect --open``: show the operators that a library registers when it is opened."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from .. import _core
from ..binary.allowed import check_allowed
from ..binary.elf import LibraryFile, read
from ..binary.file_kind import subject_of
from ..binary.open import open_library
from ..core.errors import LibraryError, PolyopError
from ..define.library.load import checked_rows
from ..kernels.module.library import ENTRY as MODULE
from ..kernels.module.library import VERSION
from ..kernels.module.registrations import ENTRY as LIBRARY
from ..kernels.module.registrations import Row, open_rows
from ..providers.aten.registered import registers_in_torch, torch_operators

_PROGRAM = (
    "import sys; sys.path[:] = [one for one in sys.path if one]; "  # not the current folder's modules
    "from polyop.cli.inspect_tables import print_tables; sys.exit(print_tables(sys.argv[1]))"
)
_SECONDS = 300


def has_tables(file: LibraryFile) -> bool:
    """Return whether a library registers operators when it is opened."""
    return MODULE in file.functions or LIBRARY in file.functions or registers_in_torch(file)


class Opened(NamedTuple):
    """What a library registers, as text, what went wrong, and the exit code."""

    output: str
    errors: str
    code: int


def show_opened(path: Path) -> int:
    """Print what a library registers; return 0, or 1 if it cannot be loaded. Raises as below."""
    opened = open_elsewhere(path)
    print(opened.output, end="", flush=True)
    print(opened.errors, end="", file=sys.stderr)
    return opened.code


def open_elsewhere(path: Path) -> Opened:
    """Return what a library registers.

    It is opened in another process, so that a crash becomes a message. No operator is called. Raises
    ``LibraryError`` if that process dies, and ``ArgumentTypeError`` for a library outside the folders
    that may be opened.
    """
    check_allowed(path)
    command = [sys.executable, "-c", _PROGRAM, str(path)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        rule = f"did not open within {_SECONDS} seconds: code that runs when it is opened goes on"
        raise LibraryError(subject_of(path), rule) from None
    output, errors = (text.decode(errors="backslashreplace") for text in (done.stdout, done.stderr))
    if done.returncode < 0:
        print(output, end="", flush=True)
        print(errors, end="", file=sys.stderr)
        name = signal.Signals(-done.returncode).name
        rule = f"ended the process that opened it with {name}: code that runs when it is opened crashes"
        raise LibraryError(subject_of(path), rule, hint="without --open none of its code runs")
    return Opened(output, errors, done.returncode)


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


def _line(label: str, text: str) -> None:
    print(f"{label + ':':<13} {text}")


def _module(file: LibraryFile) -> int:
    entry = _core.find_symbol(open_library(file.path), MODULE)
    version, name, broken, rows = _core.module_table(entry)
    _line("module", f"{name or 'unknown'}, contract version {version} (this polyop: {VERSION})\n")
    for _, function, signature, _ in rows:
        print(f"{name}.{function}{signature}")
    if broken:
        return _failed(broken)
    return int(version != VERSION)


def _library(file: LibraryFile) -> int:
    entry = _core.find_symbol(open_library(file.path), LIBRARY)
    _line("ABI version", f"{_core.module_table(entry)[0]} (this polyop: {VERSION})")
    rows = open_rows(file.path)
    for row in rows:
        if row.kind == "library":
            _line("namespace", f"{row.name}  ({row.place})")
    schemas = [row for row in rows if row.kind == "schema"]
    for namespace in dict.fromkeys(row.namespace for row in schemas):
        print()
        for row in schemas:
            if row.namespace == namespace:
                print(f"{_schema(row)}  [{_keys(row, rows)}]")
    checked_rows(rows, file.path, {})
    return 0


def _torch(file: LibraryFile) -> int:
    operators = torch_operators(file.path)
    print()
    for name, schema, keys in operators:
        print(f"{schema or f'{name} (no schema)'}  [{', '.join(keys) or 'no functions'}]")
    if not operators:
        print("it registers no operators in PyTorch")
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
    print(problem, file=sys.stderr)
    return 1
