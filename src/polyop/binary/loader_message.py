"""What the system's loader means by its message, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Callable

from ..core.errors import LibraryError
from .cxx_names import demangle
from .elf import LibraryFile
from .file_kind import file_problem, subject_of
from .known_libraries import hint_about


def _dependency(file: LibraryFile, found: re.Match[str]) -> LibraryError:
    missing = found["name"]
    if "/" in missing and (problem := file_problem(missing)) is not None:
        return LibraryError(subject_of(file.path), f"needs a library that is not usable: {problem}")
    direct = missing in file.needed
    rule = f"needs {missing}, which is not found" + (
        "" if direct else " (one of the libraries it needs does)"
    )
    searched = f"its run path ({file.runpath})" if file.runpath else "no run path of its own"
    hint = f"searched: {searched}, LD_LIBRARY_PATH, the system's folders"
    hint += "\n  add the folder to LD_LIBRARY_PATH, or link with -Wl,-rpath,<folder>"
    known = hint_about(missing)
    return LibraryError(subject_of(file.path), rule, hint=f"{hint}\n  {known}" if known else hint)


def _undefined_symbol(file: LibraryFile, found: re.Match[str]) -> LibraryError:
    name = found["name"]
    written = demangle(name)
    shown = name if written == name else f"{written} ({name})"
    general = "compile in the file that defines it, or link the library that does (-l...)"
    if written == name:
        general += '; if it is written in C++, declare it extern "C" on both sides'
    rule = f"has an undefined symbol: {shown}"
    return LibraryError(subject_of(file.path), rule, hint=hint_about(name) or general)


def _version(file: LibraryFile, found: re.Match[str]) -> LibraryError:
    hint = "it was built with a newer compiler or system than this one; rebuild it here"
    return LibraryError(
        subject_of(file.path), f"needs {found['name']}, which {found['by']} does not have", hint=hint
    )


def _thread_storage(file: LibraryFile, found: re.Match[str]) -> LibraryError:
    del found
    rule = "needs more thread-local storage than the loader has left"
    return LibraryError(
        subject_of(file.path), rule, hint="load it earlier, or start Python with LD_PRELOAD=<it>"
    )


def _not_executable(file: LibraryFile, found: re.Match[str]) -> LibraryError:
    del found
    rule = "cannot be mapped as code"
    return LibraryError(
        subject_of(file.path), rule, hint="is its file system mounted noexec? copy it elsewhere"
    )


_Explain = Callable[[LibraryFile, "re.Match[str]"], LibraryError]

# What the loader writes (glibc, then musl where it differs), and who explains it.
_MESSAGES: tuple[tuple[str, _Explain], ...] = (
    (r"(?<![^\s:])(?P<name>[^\s:]+): cannot open shared object file", _dependency),
    (r"Error loading shared library (?P<name>[^\s:]+):", _dependency),
    (r"undefined symbol: (?P<name>[^\s,]+)", _undefined_symbol),
    (r"Error relocating \S+: (?P<name>\S+): symbol not found", _undefined_symbol),
    (r"(?<![^\s:])(?P<by>[^\s:]+): version [`'](?P<name>[^']+)' not found", _version),
    (r"static TLS", _thread_storage),
    (r"failed to map segment", _not_executable),
)


_LONGEST = 4096
"""Characters of a message that are looked at; the names in it come from the file."""


def explain(file: LibraryFile, message: str) -> LibraryError | None:
    """Return what the loader's ``message`` about ``file`` means, or None when it is not known."""
    for pattern, make in _MESSAGES:
        found = re.search(pattern, message[:_LONGEST])
        if found:
            return make(file, found)
    return None
