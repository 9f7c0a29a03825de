"""``polyop inspect lib.so``: show the operators of a library, and what it was built against.

``polyop inspect aten [word]``: list PyTorch's operators.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from typing import Any

from ..binary import export_manifest
from ..binary.cxx_names import demangle, string_abi
from ..binary.diagnose import AotFunction, LibraryFile, aot_functions, companion_problem, read
from ..binary.elf import own_machine, tvm_ffi_functions
from ..binary.elsewhere import Opened
from ..binary.file_kind import subject_of
from ..binary.known_libraries import frameworks
from ..core.errors import LibraryError, one_line
from ..core.versions import ABI_VERSION
from ..kernels.module.function_table import ENTRY as MODULE
from ..kernels.module.registrations import ENTRY as LIBRARY
from ..providers.aten.registered import registers_in_torch
from .inspect_kinds import kinds, of_the_author
from .inspect_package import is_package, show_package
from .inspect_tables import has_tables, open_elsewhere, show_opened
from .terminal import fact, say, say_json, styled

_MAX_NOTES = 100
_COLUMNS = ("operator", "Init", "InferShape", "InferType")


def add(verbs: Any) -> None:
    """Add the verb to the parser of ``polyop``."""
    parser = verbs.add_parser(
        "inspect",
        help="show the operators of a shared library and its ABI, or those of PyTorch",
        description="Show the operators of a shared library and what it was built against. "
        "The file is read, and none of its code runs. What it registers in code (a C++ module, an operator "
        "library, TORCH_LIBRARY) is known only with --open, which opens it in another process. No "
        "operator is called. With 'aten', list PyTorch's operators instead.",
    )
    parser.add_argument(
        "--open",
        action="store_true",
        help="open the library, so that code of it runs, and show the operators that it registers",
    )
    parser.add_argument("--json", action="store_true", help="print the facts as JSON")
    parser.add_argument("library", help="the path of the library, of a wheel, of a package (.pt2), or 'aten'")
    parser.add_argument(
        "word", nargs="?", default="", help="with 'aten': what the name holds, in any namespace"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the report on ``options.library``; return 0, or 1 if it is not a usable library."""
    if options.library == "aten":
        return _print_aten(options.word, as_json=options.json)
    if options.word:
        say(f"only 'aten' takes a second argument, but got {options.word!r}", file=sys.stderr)
        return 2
    if is_package(options.library):
        return show_package(options.library, as_json=options.json)
    try:
        file = _read(options.library)
    except LibraryError as problem:
        say(problem, file=sys.stderr)
        return 1
    registers = has_tables(file)
    operators = of_the_author(file, aot_functions(file))
    rows = [_row(operator) for operator in operators]
    notes = remarks(file, operators) + ([] if options.open else _unopened(file))
    if options.json:
        opened = open_elsewhere(file.path) if options.open and registers else None
        return _print_json(facts(file), rows, notes, opened)
    show = _print_rich if sys.stdout.isatty() else _print_plain
    show(facts(file), rows, notes, "" if registers or tvm_ffi_functions(file) else "no operators")
    return show_opened(file.path) if options.open and registers else 0


def _unopened(file: LibraryFile) -> list[str]:
    """Return remarks on the parts of the library that only opening it would show."""
    kinds = (
        (MODULE in file.functions, "the functions of its PYBIND11_MODULE"),
        (LIBRARY in file.functions, "the operators of its POLYOP_LIBRARY"),
        (registers_in_torch(file), "operators that it registers by TORCH_LIBRARY"),
    )
    return [
        f"{what} are known only with --open, which runs code of the library"
        for is_there, what in kinds
        if is_there
    ]


def _print_json(
    lines: list[tuple[str, str]], rows: list[tuple[str, ...]], notes: list[str], opened: Opened | None
) -> int:
    """Print the facts by label, each as a list; return 0, or 1 if the library could not be opened."""
    labels: dict[str, list[str]] = {}
    for label, text in lines:
        labels.setdefault(label, []).append(text)
    operators = [
        {"operator": name, **{key: flag == "yes" for key, flag in zip(_COLUMNS[1:], flags, strict=True)}}
        for name, *flags in rows
    ]
    result: dict[str, Any] = {"facts": labels, "operators": operators, "notes": notes}
    if opened is not None:
        result["opened"] = {"lines": opened.output.splitlines(), "problems": opened.errors.splitlines()}
    say_json(result)
    return 0 if opened is None else opened.code


def _print_aten(word: str, *, as_json: bool) -> int:
    from ..providers.aten import listing

    rows = listing(word)
    if as_json:
        say_json([{"schema": schema, "problem": problem} for schema, problem in rows])
        return 0 if rows else 1
    for schema, problem in rows:
        say(f"{schema}  # not for polyop: {problem}" if problem else schema)
    condition = f" with {word!r} in the name" if word else ""
    usable = sum(not problem for _, problem in rows)
    say(f"\n{len(rows)} operators{condition}, {usable} of them by polyop.aten()")
    return 0 if rows else 1


def _read(path: str) -> LibraryFile:
    if not sys.stderr.isatty():
        return read(path)
    from rich.console import Console

    with Console(stderr=True).status(f"reading {path}"):  # a framework's own library takes seconds
        return read(path)


def facts(file: LibraryFile) -> list[tuple[str, str]]:
    """Return the facts about a library, as label and text."""
    names = (*file.cxx_functions, *file.undefined)
    contract = "no header of polyop included" if file.marker is None else f"version {file.marker}"
    has_table = MODULE in file.functions or LIBRARY in file.functions
    rows = (
        ("library", str(file.path)),
        ("machine", file.machine),
        *(("kind", text) for text in kinds(file)),
        *([] if has_table else [("contract", f"{contract} (this polyop: {ABI_VERSION})")]),
        ("needs", ", ".join(file.needed)),
        ("versions", ", ".join(file.versions)),
        ("run path", file.runpath or ""),
        ("C++ strings", string_abi(names) or ""),
        ("frameworks", ", ".join(frameworks(file.needed, file.undefined))),
    )
    registered = [("registers", text) for text in _blocks(file)]
    if functions := tvm_ffi_functions(file):
        registered.append(("tvm-ffi", ", ".join(functions)))
    registered += _exported(file)
    return [(label, text or "none") for label, text in (*rows, *registered)]


def _exported(file: LibraryFile) -> list[tuple[str, str]]:
    """Return the operators of a library of ``polyop export``, with what cannot call them."""
    lines = []
    try:
        rows = (export_manifest.read(file.path) or {"operators": []})["operators"]
    except LibraryError as problem:
        return [("exports", f"unknown: {problem}")]
    for row in rows:
        refused = [f"; not for {name}: {reason}" for name, reason in row["not_for"].items()]
        if row["no_backward"]:
            refused.append(f"; no gradient: {row['no_backward']}")
        lines.append(("exports", row["schema"] + "".join(refused)))
    return lines


def _blocks(file: LibraryFile) -> list[str]:
    """Return each namespace that the library registers in PyTorch, with the keys of its functions."""
    keys: dict[str, dict[str, None]] = {}
    for _, namespace, key in file.blocks:
        keys.setdefault(namespace, {}).update({key: None} if key else {})
    return [f"{namespace} ({', '.join(names) or 'schemas'})" for namespace, names in keys.items()]


def remarks(file: LibraryFile, operators: Iterable[AotFunction]) -> list[str]:
    """Return the reasons why the library or some of its operators cannot be used on this machine."""
    notes: list[str] = []
    if file.machine != own_machine():
        notes.append(f"it is for {file.machine}, and this machine is {own_machine()}")
    problems = dict.fromkeys(str(companion_problem(file, operator.name) or "") for operator in operators)
    notes += [text.removeprefix(f"{subject_of(file.path)}: ") for text in problems if text]
    kernels = [name for name in file.cxx_functions if "iPPv" in name][:_MAX_NOTES]  # (int, void**
    signatures = [name for name in map(demangle, kernels) if re.search(r"\(int, void\*\*", name)]
    notes += [f'{name} has a C++ name, so it cannot be an operator: add extern "C"' for name in signatures]
    return notes


def _row(operator: AotFunction) -> tuple[str, ...]:
    flags = (operator.has_init, operator.has_infer_shape, operator.has_infer_type)
    return (operator.name, *("yes" if flag else "-" for flag in flags))


def _print_plain(
    lines: list[tuple[str, str]], rows: list[tuple[str, ...]], notes: list[str], without: str
) -> None:
    for label, text in lines:
        fact(label, text)
    if rows or without:
        say()
    if rows:
        width = max(len(row[0]) for row in (_COLUMNS, *rows))
        for name, *flags in (_COLUMNS, *rows):
            say(f"{one_line(name):<{width}}  " + "  ".join(f"{flag:<10}" for flag in flags).rstrip())
    elif without:
        say(without)
    for note in notes:
        say(f"\nnote: {one_line(note)}")


def _print_rich(
    lines: list[tuple[str, str]], rows: list[tuple[str, ...]], notes: list[str], without: str
) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    about = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for label, text in lines:
        about.add_row(styled(label, style="bold"), styled(one_line(text)))
    console.print(about)
    if rows:
        table = Table(*_COLUMNS)
        for row in rows:
            table.add_row(*map(styled, map(one_line, row)))
        console.print(table)
    elif without:
        console.print(without)
    for note in notes:
        console.print(styled("note: ", style="yellow") + styled(one_line(note)))
