"""Explain the messages of the dynamic loader: what they mean, and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable

from ..core.errors import LibraryError
from .cxx_names import demangle
from .elf import LibraryFile
from .file_kind import file_problem, subject_of
from .known_libraries import hint_about


def _dependency(file: LibraryFile, match: re.Match[str]) -> LibraryError:
    missing = match["name"]
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


def _undefined_symbol(file: LibraryFile, match: re.Match[str]) -> LibraryError:
    name = match["name"]
    demangled = demangle(name)
    label = name if demangled == name else f"{demangled} ({name})"
    hint = "compile in the file that defines it, or link the library that does (-l...)"
    if demangled == name:
        hint += '; if it is written in C++, declare it extern "C" on both sides'
    rule = f"has an undefined symbol: {label}"
    return LibraryError(subject_of(file.path), rule, hint=hint_about(name) or hint)


def _version(file: LibraryFile, match: re.Match[str]) -> LibraryError:
    hint = "it was built with a newer compiler or system than this one; rebuild it here"
    return LibraryError(
        subject_of(file.path), f"needs {match['name']}, which {match['by']} does not have", hint=hint
    )


def _thread_storage(file: LibraryFile, match: re.Match[str]) -> LibraryError:
    del match
    rule = "needs more thread-local storage than the loader has left"
    return LibraryError(
        subject_of(file.path), rule, hint="load it earlier, or start Python with LD_PRELOAD=<it>"
    )


def _not_executable(file: LibraryFile, match: re.Match[str]) -> LibraryError:
    del match
    rule = "cannot be mapped as code"
    return LibraryError(
        subject_of(file.path), rule, hint="is its file system mounted noexec? copy it elsewhere"
    )


_Explain = Callable[[LibraryFile, "re.Match[str]"], LibraryError]

# The loader's messages (of glibc, and of musl if it differs), and the function that explains each.
_MESSAGES: tuple[tuple[str, _Explain], ...] = (
    (r"(?<![^\s:])(?P<name>[^\s:]+): cannot open shared object file", _dependency),
    (r"Error loading shared library (?P<name>[^\s:]+):", _dependency),
    (r"undefined symbol: (?P<name>[^\s,]+)", _undefined_symbol),
    (r"Error relocating \S+: (?P<name>\S+): symbol not found", _undefined_symbol),
    (r"(?<![^\s:])(?P<by>[^\s:]+): version [`'](?P<name>[^']+)' not found", _version),
    (r"static TLS", _thread_storage),
    (r"failed to map segment", _not_executable),
)


_MAX_MESSAGE = 4096
"""Characters of a message that are searched. Names in it come from the file, so they may be long."""


def explain(file: LibraryFile, message: str) -> LibraryError | None:
    """Return the error that the loader's ``message`` about ``file`` stands for, or None if it is unknown."""
    for pattern, explain_match in _MESSAGES:
        match = re.search(pattern, message[:_MAX_MESSAGE])
        if match:
            return explain_match(file, match)
    return None
