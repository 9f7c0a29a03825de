"""What a shared library says of itself, read from the file without opening it as code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.errors import LibraryError
from .abi import MARKER
from .cxx_names import is_mangled
from .file_kind import file_problem, subject_of

# ELF's name of a machine, our word for it, its usual number of bits.
_MACHINES = {
    "EM_X86_64": ("x86-64", 64),
    "EM_AARCH64": ("aarch64", 64),
    "EM_386": ("x86", 32),
    "EM_ARM": ("arm", 32),
    "EM_RISCV": ("riscv", 64),
    "EM_PPC64": ("ppc64", 64),
    "EM_S390": ("s390", 64),
    "EM_LOONGARCH": ("loongarch", 64),
}
_PIE = 0x08000000  # DF_1_PIE: a program, although of the type of a library
_COMPANIONS = ("Init", "InferShape", "InferType")
_RUNTIME = ("_init", "_fini", "_start", "main")
_RUNTIME_PREFIXES = ("__", "polyop_", "PyInit_")  # the toolchain's, ours, Python's


@dataclass(frozen=True)
class LibraryFile:
    """A shared library as a file.

    ``functions`` are exported under C names, ``cxx_functions`` under C++ ones, ``undefined``
    names come from elsewhere when it is opened. ``marker`` is the version of polyop's contract
    it was built against, None when no header of polyop was included. ``versions`` are the
    newest symbol versions it needs, such as ``GLIBC_2.34``.
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
    with _parsed(path) as elf:
        return _describe(Path(path), elf)


def hidden_functions(path: str | Path) -> set[str]:
    """Return the functions the library has and does not export (none when it is stripped)."""
    with _parsed(path) as elf:
        table = elf.get_section_by_name(".symtab")
        found = [] if table is None else table.iter_symbols()
        return {s.name for s in found if _is_function(s) and not _is_exported(s)}


def own_machine() -> str:
    """Return the machine of this process, in the words of ``LibraryFile.machine``."""
    with _parsed("/proc/self/exe") as elf:
        return _machine(elf)


@contextmanager
def _parsed(path: str | Path) -> Iterator[Any]:
    """Yield the parsed file; whatever the parser raises becomes one error about the file."""
    from elftools.elf.elffile import ELFFile

    with Path(path).open("rb") as stream:
        try:
            yield ELFFile(stream)
        except LibraryError:
            raise
        except Exception as problem:  # arbitrary bytes make the parser fail with anything
            rule = "is damaged: its tables cannot be read"
            raise LibraryError(subject_of(path), rule, hint="build or copy it again") from problem


def _describe(path: Path, elf: Any) -> LibraryFile:
    dynamic = next((s for s in elf.iter_segments() if s.header.p_type == "PT_DYNAMIC"), None)
    if dynamic is None:
        raise LibraryError(subject_of(path), "must be a shared library", "a file without a dynamic section")
    tags = list(dynamic.iter_tags())
    if any(tag.entry.d_tag == "DT_FLAGS_1" and tag.entry.d_val & _PIE for tag in tags):
        hint = "link it with -shared to get a library"
        raise LibraryError(subject_of(path), "must be a shared library", "a program", hint=hint)
    table = elf.get_section_by_name(".dynsym") or dynamic  # section headers may be stripped
    symbols = list(table.iter_symbols())
    functions = sorted({s.name for s in symbols if _is_function(s) and _is_exported(s)})
    runpaths = [getattr(t, "runpath", None) or getattr(t, "rpath", None) for t in tags]
    return LibraryFile(
        path=path,
        machine=_machine(elf),
        functions=tuple(name for name in functions if not is_mangled(name)),
        needed=tuple(tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"),
        runpath=next((found for found in runpaths if found), None),
        marker=next((_int_at(elf, s) for s in symbols if s.name == MARKER and _is_exported(s)), None),
        cxx_functions=tuple(name for name in functions if is_mangled(name)),
        undefined=tuple(sorted({s.name for s in symbols if s.entry.st_shndx == "SHN_UNDEF" and s.name})),
        versions=tuple(_newest_versions(elf)),
    )


def _is_function(symbol: Any) -> bool:
    defined = symbol.entry.st_shndx != "SHN_UNDEF"
    return defined and symbol.entry.st_info.type in ("STT_FUNC", "STT_GNU_IFUNC", "STT_LOOS")


def _is_exported(symbol: Any) -> bool:
    shown = symbol.entry.st_other.visibility in ("STV_DEFAULT", "STV_PROTECTED")
    return shown and symbol.entry.st_shndx != "SHN_UNDEF" and symbol.entry.st_info.bind != "STB_LOCAL"


def _machine(elf: Any) -> str:
    number = elf.header.e_machine
    name, bits = _MACHINES.get(number, (str(number).removeprefix("EM_").lower(), elf.elfclass))
    unusual = "" if elf.elfclass == bits else f", {elf.elfclass}-bit"
    return f"{name}{unusual}{'' if elf.little_endian else ', big-endian'}"


def _int_at(elf: Any, symbol: Any) -> int | None:
    for offset in elf.address_offsets(symbol.entry.st_value, 4):
        elf.stream.seek(offset)
        return int.from_bytes(elf.stream.read(4), "little" if elf.little_endian else "big", signed=True)
    return None


_BY_FEATURE = {"GLIBC_ABI_DT_RELR": "GLIBC_2.36"}
"""Versions that are named for a feature, and the release that brought it."""


def _newest_versions(elf: Any) -> Iterator[str]:
    section = elf.get_section_by_name(".gnu.version_r")
    newest: dict[str, tuple[list[int], str]] = {}
    for _, wanted in () if section is None else section.iter_versions():
        for version in wanted:
            name = _BY_FEATURE.get(version.name, version.name)
            family, _, number = name.partition("_")
            if number.replace(".", "").isdigit():
                key = [int(part) for part in number.split(".")]
                newest[family] = max(newest.get(family, (key, name)), (key, name))
    for family in sorted(newest):
        yield newest[family][1]
