"""``polyop inspect lib.so``: the operators a library offers, and what it was built against.

``polyop inspect aten [word]``: the operators that PyTorch has under a name.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from typing import Any

from ..core.errors import LibraryError
from ..kernels.abi import ABI_VERSION
from ..kernels.cxx_names import demangle, string_abi
from ..kernels.elf import own_machine
from ..kernels.file_kind import subject_of
from ..kernels.known_libraries import frameworks
from ..kernels.library_file import AotFunction, LibraryFile, aot_functions, companion_problem, read
from .inspect_tables import has_table, print_tables

_COLUMNS = ("operator", "Init", "InferShape", "InferType")


def add(subparsers: Any) -> None:
    """Add the verb to the parser of ``polyop``."""
    parser = subparsers.add_parser(
        "inspect",
        help="show the operators of a shared library and its ABI, or those of PyTorch",
        description="Show the operators of a shared library and what it was built against. "
        "The file is read; one with a table of operators (a C++ module, an operator library) is opened "
        "for it. No operator is called. With 'aten', list PyTorch's operators instead.",
    )
    parser.add_argument("library", help="the path of the library, or 'aten'")
    parser.add_argument(
        "word", nargs="?", default="", help="with 'aten': what the name holds, in any namespace"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the report on ``options.library``; return 0, or 1 when it is no usable library."""
    if options.library == "aten":
        return _print_aten(options.word)
    if options.word:
        print(f"only 'aten' takes a second argument, but got {options.word!r}", file=sys.stderr)
        return 2
    try:
        file = _read(options.library)
    except LibraryError as problem:
        print(problem, file=sys.stderr)
        return 1
    if has_table(file):
        return print_tables(file, facts(file))
    operators = aot_functions(file)
    rows = [_row(operator) for operator in operators]
    if sys.stdout.isatty():
        _print_rich(facts(file), rows, remarks(file, operators))
    else:
        _print_plain(facts(file), rows, remarks(file, operators))
    return 0


def _print_aten(word: str) -> int:
    from ..providers.aten import listing

    rows = listing(word)
    for schema, problem in rows:
        print(f"{schema}  # not for polyop: {problem}" if problem else schema)
    held = f" with {word!r} in the name" if word else ""
    usable = sum(not problem for _, problem in rows)
    print(f"\n{len(rows)} operators{held}, {usable} of them by polyop.aten()")
    return 0 if rows else 1


def _read(path: str) -> LibraryFile:
    if not sys.stderr.isatty():
        return read(path)
    from rich.console import Console

    with Console(stderr=True).status(f"reading {path}"):  # a framework's own library takes seconds
        return read(path)


def facts(file: LibraryFile) -> list[tuple[str, str]]:
    """Return what the library is and needs, as label and text."""
    names = (*file.cxx_functions, *file.undefined)
    contract = "no header of polyop included" if file.marker is None else f"version {file.marker}"
    known = (
        ("library", str(file.path)),
        ("machine", file.machine),
        ("contract", f"{contract} (this polyop: {ABI_VERSION})"),
        ("needs", ", ".join(file.needed)),
        ("versions", ", ".join(file.versions)),
        ("run path", file.runpath or ""),
        ("C++ strings", string_abi(names) or ""),
        ("frameworks", ", ".join(frameworks(file.needed, file.undefined))),
    )
    return [(label, text or "none") for label, text in known]


def remarks(file: LibraryFile, operators: Iterable[AotFunction]) -> list[str]:
    """Return what keeps the library or its operators from being used here."""
    found: list[str] = []
    if file.machine != own_machine():
        found.append(f"it is for {file.machine}, and this machine is {own_machine()}")
    problems = dict.fromkeys(str(companion_problem(file, operator.name) or "") for operator in operators)
    found += [text.removeprefix(f"{subject_of(file.path)}: ") for text in problems if text]
    authored = [name for name in map(demangle, file.cxx_functions) if re.search(r"\(int, void\*\*", name)]
    found += [f'{name} has a C++ name, so it cannot be an operator: add extern "C"' for name in authored]
    return found


def _row(operator: AotFunction) -> tuple[str, ...]:
    flags = (operator.has_init, operator.has_infer_shape, operator.has_infer_type)
    return (operator.name, *("yes" if flag else "-" for flag in flags))


def _print_plain(lines: list[tuple[str, str]], rows: list[tuple[str, ...]], notes: list[str]) -> None:
    for label, text in lines:
        print(f"{label + ':':<13} {text}")
    print()
    if rows:
        width = max(len(row[0]) for row in (_COLUMNS, *rows))
        for name, *flags in (_COLUMNS, *rows):
            print(f"{name:<{width}}  " + "  ".join(f"{flag:<10}" for flag in flags).rstrip())
    else:
        print("no operators")
    for note in notes:
        print(f"\nnote: {note}")


def _print_rich(lines: list[tuple[str, str]], rows: list[tuple[str, ...]], notes: list[str]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    about = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for label, text in lines:
        about.add_row(Text(label, style="bold"), Text(text))
    console.print(about)
    if rows:
        table = Table(*_COLUMNS)
        for row in rows:
            table.add_row(*map(Text, row))
        console.print(table)
    else:
        console.print("no operators")
    for note in notes:
        console.print(Text("note: ", style="yellow") + Text(note))
