"""Say by its first bytes what a file is that was passed as a shared library and is none."""

from __future__ import annotations

import difflib
import stat
from pathlib import Path

from ..core.errors import LibraryError

_BUILD = "build one: polyop build source.cc -o lib.so"
_SOURCES = (".c", ".cc", ".cpp", ".cxx", ".cu", ".hip")

# The first bytes of a file, what such a file is, and what to do.
_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (
        b"!<arch>\n",
        "a static archive",
        "link it: c++ -shared -Wl,--whole-archive lib.a -Wl,--no-whole-archive -o lib.so",
    ),
    (
        b"!<thin>\n",
        "a static archive",
        "link it: c++ -shared -Wl,--whole-archive lib.a -Wl,--no-whole-archive -o lib.so",
    ),
    (b"MZ", "a Windows library or program", _BUILD),
    (b"\xcf\xfa\xed\xfe", "a macOS library or program", _BUILD),
    (b"\xca\xfe\xba\xbe", "a macOS library or program", _BUILD),
    (b"PK\x03\x04", "a zip file or wheel", "unpack it, and name the library inside"),
    (b"\x1f\x8b", "a gzip file", "unpack it, and name the library inside"),
)

# The e_type of an ELF file that is no shared library, what such a file is, and what to do.
_ELF_TYPES: dict[int, tuple[str, str]] = {
    1: ("an object file, not linked yet", "link it: c++ -shared file.o -o lib.so (compiled with -fPIC)"),
    2: ("a program", "link it with -shared to get a library"),
    4: ("a core dump", _BUILD),
}


def subject_of(path: str | Path) -> str:
    """Return the subject of errors about the library at ``path``."""
    return f"library {path}"


def file_problem(path: str | Path) -> LibraryError | None:
    """Return why the file cannot be a shared library, or None if it may be one.

    Only the file's status and its first bytes are read.

    >>> print(file_problem(""))
    library '': the path is empty
      give the path of a shared library
    """
    text = str(path)
    if not text:
        return LibraryError(subject_of("''"), "the path is empty", hint="give the path of a shared library")
    try:
        mode = Path(text).stat().st_mode
    except OSError as problem:
        return _missing_file(text, problem)
    except ValueError as problem:  # a null character
        return LibraryError(subject_of(repr(text)), f"is no path: {problem}")
    if not stat.S_ISREG(mode):
        seen = "a directory" if stat.S_ISDIR(mode) else "a device, pipe or socket"
        hint = _suggestions(Path(text), "it", Path(text).name) if stat.S_ISDIR(mode) else None
        return LibraryError(subject_of(text), "must be a shared library", seen, hint=hint)
    try:
        with Path(text).open("rb") as stream:
            first = stream.read(512)
    except OSError as problem:
        return LibraryError(subject_of(text), f"cannot be read: {problem.strerror}")
    return _kind_problem(text, first)


def _missing_file(text: str, problem: OSError) -> LibraryError:
    path = Path(text)
    rule = "couldn't find the AOT binary file"
    if not isinstance(problem, FileNotFoundError):  # such as a name that is too long, or a missing permission
        return LibraryError(subject_of(text), f"{rule}: {problem.strerror}")
    if path.is_symlink():
        seen = f"a link to {path.readlink()}, which does not exist"
        return LibraryError(subject_of(text), rule, seen)
    folder = path.parent.resolve()
    if not folder.is_dir():
        return LibraryError(subject_of(text), rule, hint=f"there is no folder {folder}")
    return LibraryError(subject_of(text), rule, hint=_suggestions(folder, str(folder), path.name))


def _suggestions(folder: Path, label: str, name: str) -> str:
    """Return which files of the folder the author may have meant; ``label`` names the folder in the text."""
    try:
        names = sorted(entry.name for entry in folder.iterdir() if entry.is_file())
    except OSError as problem:
        return f"the folder {label} cannot be listed: {problem.strerror}"
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    listed = near or [other for other in names if ".so" in other][:5]
    if not listed:
        return f"{label} holds no library"
    return f"{label} has {'the similar name' if near else 'the libraries'} {', '.join(listed)}"


def _kind_problem(text: str, first: bytes) -> LibraryError | None:
    if first[:4] == b"\x7fELF":
        return _elf_problem(text, first)
    rule = "must be a shared library"
    if not first:
        return LibraryError(
            subject_of(text), rule, "an empty file", hint="was its build interrupted? build it again"
        )
    for magic, seen, hint in _MAGIC:
        if first.startswith(magic):
            return LibraryError(subject_of(text), rule, seen, hint=hint)
    if _is_text(first):
        line = first.decode(errors="replace").strip().split("\n")[0][:60]
        is_source = Path(text).suffix in _SOURCES
        hint = f"build it: polyop build {Path(text).name} -o lib.so" if is_source else _BUILD
        return LibraryError(subject_of(text), rule, f"a text file that begins with {line!r}", hint=hint)
    return LibraryError(subject_of(text), rule, f"a file that begins with {first[:8]!r}", hint=_BUILD)


def _is_text(first: bytes) -> bool:
    return not any(byte < 32 and byte not in b"\t\n\r\f" for byte in first)


def _elf_problem(text: str, first: bytes) -> LibraryError | None:
    rule = "must be a shared library"
    if len(first) < 20:
        return LibraryError(subject_of(text), rule, "a file that was cut off", hint="build or copy it again")
    kind = int.from_bytes(first[16:18], "little" if first[5] == 1 else "big")
    seen, hint = _ELF_TYPES.get(kind, (None, None))
    return None if seen is None else LibraryError(subject_of(text), rule, seen, hint=hint)
