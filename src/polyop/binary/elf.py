"""What a shared library says of itself, read from the file without opening it as code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..core.abi import MARKER
from ..core.errors import LibraryError
from .cxx_names import is_mangled
from .elf_tables import DT_FLAGS_1, DT_NEEDED, DT_RPATH, DT_RUNPATH, SHT_SYMTAB, Damaged, Elf, Symbol
from .file_kind import file_problem, subject_of

# ELF's number of a machine, our word for it, its usual number of bits.
_MACHINES = {
    62: ("x86-64", 64),
    183: ("aarch64", 64),
    3: ("x86", 32),
    40: ("arm", 32),
    243: ("riscv", 64),
    21: ("ppc64", 64),
    22: ("s390", 64),
    258: ("loongarch", 64),
}
_PIE = 0x08000000  # DF_1_PIE: a program, although of the type of a library
_FUNCTIONS = (2, 10)  # STT_FUNC, STT_GNU_IFUNC
_SHOWN = (0, 3)  # STV_DEFAULT, STV_PROTECTED
_COMPANIONS = ("Init", "InferShape", "InferType")
_RUNTIME = ("_init", "_fini", "_start", "main")
_RUNTIME_PREFIXES = ("__", "polyop_", "PyInit_")  # the toolchain's, ours, Python's


@dataclass(frozen=True)
class LibraryFile:
    """A shared library as a file.

    ``functions`` are exported under C names, ``cxx_functions`` under C++ ones, ``undefined``
    names come from elsewhere when it is opened. ``marker`` is the version of polyop's contract
    it was built against, None when no header of polyop was included. ``versions`` are the
    newest symbol versions it needs, such as ``GLIBC_2.34``. ``blocks`` are the POLYOP_LIBRARY blocks of its
    sources: kind, namespace and key, such as ``("implementations", "myops", "CPU")``.
    """

    path: Path
    machine: str
    functions: tuple[str, ...]
    needed: tuple[str, ...]
    runpath: str | None
    marker: int | None
    cxx_functions: tuple[str, ...] = ()
    undefined: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    blocks: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class AotFunction:
    """A function of a library that may be an operator, and which companions it has."""

    name: str
    has_init: bool
    has_infer_shape: bool
    has_infer_type: bool


def aot_functions(file: LibraryFile) -> tuple[AotFunction, ...]:
    """Return the functions that may be operators: C names, no companions, nothing of a runtime.

    A library does not record signatures, so a helper exported by its author is among them.
    """
    names = set(file.functions)

    def is_companion(name: str) -> bool:
        return any(name.endswith(end) and name[: -len(end)] in names for end in _COMPANIONS)

    return tuple(
        AotFunction(name, *(name + end in names for end in _COMPANIONS))
        for name in file.functions
        if name not in _RUNTIME and not name.startswith(_RUNTIME_PREFIXES) and not is_companion(name)
    )


def companions(file: LibraryFile, name: str) -> list[str]:
    """Return the companions that the library exports for the function ``name``."""
    return [name + end for end in _COMPANIONS if name + end in file.functions]


def read(path: str | Path) -> LibraryFile:
    """Return what the library at ``path`` says of itself; none of its code runs.

    Raises ``LibraryError`` for a file that is no shared library, of any machine.
    """
    problem = file_problem(path)
    if problem is not None:
        raise problem
    with opened(path) as elf:
        return _describe(Path(path), elf)


def hidden_functions(path: str | Path) -> set[str]:
    """Return the functions the library has and does not export (none when it is stripped)."""
    with opened(path) as elf:
        tables = [section for section in elf.sections if section.kind == SHT_SYMTAB]
        symbols = [symbol for table in tables for symbol in elf.symbols(table)]
        return {s.name for s in symbols if _is_function(s) and not _is_exported(s)}


def own_machine() -> str:
    """Return the machine of this process, in the words of ``LibraryFile.machine``."""
    with opened("/proc/self/exe") as elf:
        return _machine(elf)


@contextmanager
def opened(path: str | Path) -> Iterator[Elf]:
    """Yield the tables of a file; raises ``LibraryError`` where they are damaged or it cannot be read."""
    try:
        with Path(path).open("rb") as stream:
            yield Elf(stream)
    except Damaged as problem:
        rule = f"is damaged: its tables cannot be read ({problem})"
        raise LibraryError(subject_of(path), rule, hint="build or copy it again") from None
    except OSError as problem:
        raise LibraryError(subject_of(path), f"cannot be read: {problem.strerror}") from None


def _describe(path: Path, elf: Elf) -> LibraryFile:
    if elf.dynamic is None:
        raise LibraryError(subject_of(path), "must be a shared library", "a file without a dynamic section")
    if (elf.tag(DT_FLAGS_1) or 0) & _PIE:
        hint = "link it with -shared to get a library"
        raise LibraryError(subject_of(path), "must be a shared library", "a program", hint=hint)
    symbols = list(elf.dynamic_symbols())
    functions = sorted({s.name for s in symbols if _is_function(s) and _is_exported(s)})
    folders = [elf.string(value) for tag, value in elf.dynamic if tag in (DT_RPATH, DT_RUNPATH)]
    return LibraryFile(
        path=path,
        machine=_machine(elf),
        functions=tuple(name for name in functions if not is_mangled(name)),
        needed=tuple(elf.string(value) for tag, value in elf.dynamic if tag == DT_NEEDED),
        runpath=next((found for found in folders if found), None),
        marker=next((_int_at(elf, s) for s in symbols if s.name == MARKER and _is_exported(s)), None),
        cxx_functions=tuple(name for name in functions if is_mangled(name)),
        undefined=tuple(sorted({s.name for s in symbols if not s.section and s.name})),
        versions=tuple(_newest_versions(elf)),
        blocks=tuple(_blocks(elf)),
    )


def _blocks(elf: Elf) -> Iterator[tuple[str, str, str]]:
    for note in elf.section("polyop_blocks").split(b"\0"):
        words = note.decode(errors="backslashreplace").split(" ")
        if len(words) == 3:
            yield words[0], words[1], words[2]


def _is_function(symbol: Symbol) -> bool:
    return bool(symbol.section) and symbol.info & 15 in _FUNCTIONS


def _is_exported(symbol: Symbol) -> bool:
    is_local = symbol.info >> 4 == 0
    return bool(symbol.section) and symbol.other & 3 in _SHOWN and not is_local


def _machine(elf: Elf) -> str:
    name, bits = _MACHINES.get(elf.machine, (f"machine {elf.machine}", elf.bits))
    unusual = "" if elf.bits == bits else f", {elf.bits}-bit"
    return f"{name}{unusual}{'' if elf.is_little else ', big-endian'}"


def _int_at(elf: Elf, symbol: Symbol) -> int:
    data = elf.at(elf.offset_of(symbol.value), 4)
    return int.from_bytes(data, "little" if elf.is_little else "big", signed=True)


_BY_FEATURE = {"GLIBC_ABI_DT_RELR": "GLIBC_2.36"}
"""Versions that are named for a feature, and the release that brought it."""
_VERSION = re.compile(r"[^_]+_[0-9]{1,9}(\.[0-9]{1,9})*")


def _newest_versions(elf: Elf) -> Iterator[str]:
    newest: dict[str, tuple[list[int], str]] = {}
    for needed in elf.needed_versions():
        name = _BY_FEATURE.get(needed, needed)
        if _VERSION.fullmatch(name):
            family, _, number = name.partition("_")
            key = [int(part) for part in number.split(".")]
            newest[family] = max(newest.get(family, (key, name)), (key, name))
    for family in sorted(newest):
        yield newest[family][1]
