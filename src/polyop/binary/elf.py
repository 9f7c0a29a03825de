"""Describe a shared library from its file: its functions, the libraries it needs, its ABI marker.

None of its code runs. ``elf_tables`` reads the raw tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import LibraryError
from ..core.versions import MARKER
from .cxx_names import is_mangled
from .elf_tables import DT_FLAGS_1, DT_NEEDED, DT_RPATH, DT_RUNPATH, SHT_SYMTAB, Damaged, Elf, Symbol
from .file_kind import file_problem, subject_of

# e_machine: (our name for the machine, its usual number of bits)
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
_PIE = 0x08000000  # DF_1_PIE: a program, although its ELF type is that of a library
_FUNCTION_TYPES = (2, 10)  # STT_FUNC, STT_GNU_IFUNC
_EXPORTED_VISIBILITIES = (0, 3)  # STV_DEFAULT, STV_PROTECTED
_COMPANIONS = ("Init", "InferShape", "InferType")
_RUNTIME = ("_init", "_fini", "_start", "main")
_PYTHON = "PyInit_"
_RUNTIME_PREFIXES = ("__", "polyop_", _PYTHON)  # of the toolchain, of polyop, of Python modules

TVM_FFI = "__tvm_ffi_"
"""What the symbol of each function begins with that a library exports for tvm-ffi."""
_TVM_FFI_NOTES = (f"{TVM_FFI}_metadata_", f"{TVM_FFI}_doc_")  # functions that describe another one


@dataclass(frozen=True)
class LibraryFile:
    """A shared library as a file.

    ``functions`` are the functions exported under C names, ``cxx_functions`` those under C++ names.
    ``undefined`` are the symbols that other libraries must define. ``needed`` are the libraries it is linked
    with. ``marker`` is the ABI version of polyop it was built against, None if no header of polyop was
    included. ``versions`` are the newest symbol versions it needs, such as ``GLIBC_2.34``. ``blocks`` are the
    POLYOP_LIBRARY blocks of its sources: kind, namespace and key, such as
    ``("implementations", "myops", "CPU")``.
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
    """A function of a library that may be a kernel, and which companions it has."""

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


def tvm_ffi_functions(file: LibraryFile) -> tuple[str, ...]:
    """Return the functions that the library exports for tvm-ffi, by the names that its users know."""
    return tuple(
        name.removeprefix(TVM_FFI)
        for name in file.functions
        if name.startswith(TVM_FFI) and not name.startswith(_TVM_FFI_NOTES)
    )


def python_modules(file: LibraryFile) -> list[str]:
    """Return the names under which Python can import the library: one, if it is a Python module."""
    return [name.removeprefix(_PYTHON) for name in file.functions if name.startswith(_PYTHON)]


def companions(file: LibraryFile, name: str) -> list[str]:
    """Return the companions that the library exports for the function ``name``."""
    return [name + end for end in _COMPANIONS if name + end in file.functions]


def read(path: str | Path) -> LibraryFile:
    """Return the description of the library at ``path``, which may be of any machine.

    Raises ``LibraryError`` for a file that is no shared library.
    """
    problem = file_problem(path)
    if problem is not None:
        raise problem
    with opened(path) as elf:
        return _describe(Path(path), elf)


def hidden_functions(path: str | Path) -> set[str]:
    """Return the functions that the library has and does not export; none if it is stripped."""
    return {s.name for s in _all_symbols(path) if _is_function(s) and not _is_exported(s)}


def all_names(path: str | Path) -> set[str]:
    """Return the names of the functions and variables that the library has; none if it is stripped."""
    return {symbol.name for symbol in _all_symbols(path)}


def _all_symbols(path: str | Path) -> list[Symbol]:
    with opened(path) as elf:
        tables = [section for section in elf.sections if section.kind == SHT_SYMTAB]
        return [symbol for table in tables for symbol in elf.symbols(table)]


def own_machine() -> str:
    """Return the machine of this process, spelled as in ``LibraryFile.machine``."""
    with opened("/proc/self/exe") as elf:
        return _machine(elf)


@contextmanager
def opened(path: str | Path) -> Iterator[Elf]:
    """Yield the tables of a file. Raises ``LibraryError`` if they are damaged or the file cannot be read."""
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
        runpath=next((folder for folder in folders if folder), None),
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
    return bool(symbol.section) and symbol.info & 15 in _FUNCTION_TYPES


def _is_exported(symbol: Symbol) -> bool:
    is_local = symbol.info >> 4 == 0
    return bool(symbol.section) and symbol.other & 3 in _EXPORTED_VISIBILITIES and not is_local


def _machine(elf: Elf) -> str:
    name, bits = _MACHINES.get(elf.machine, (f"machine {elf.machine}", elf.bits))
    unusual = "" if elf.bits == bits else f", {elf.bits}-bit"
    return f"{name}{unusual}{'' if elf.is_little else ', big-endian'}"


def _int_at(elf: Elf, symbol: Symbol) -> int:
    data = elf.at(elf.offset_of(symbol.value), 4)
    return int.from_bytes(data, "little" if elf.is_little else "big", signed=True)


_BY_FEATURE = {"GLIBC_ABI_DT_RELR": "GLIBC_2.36"}
"""A symbol version that is named after a feature, and the release that introduced it."""
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
