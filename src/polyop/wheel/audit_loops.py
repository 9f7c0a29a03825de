"""Check the compiled loop kernels of a wheel against their index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from ..core.abi import ABI_VERSION
from ..core.limits import read_json
from ..loops.library import shipped
from . import platforms

if TYPE_CHECKING:
    from ..binary.elf import LibraryFile
    from .archive import Archive
    from .report import Report


def describe_loops(archive: Archive, libraries: Mapping[str, LibraryFile], report: Report) -> None:
    """Add the loop kernels of every index in a wheel to the report, and where the wheel differs from it."""
    for member in filter(_is_index, archive.names):
        _describe_index(archive, member, libraries, report)


def _describe_index(
    archive: Archive, member: str, libraries: Mapping[str, LibraryFile], report: Report
) -> None:
    try:
        index = read_json(archive.text(member))
        breaches = list(_index_breaches(archive, member, index, libraries))
        rows = index["kernels"]
        breaches += [text for row in rows for text in _row_breaches(archive, member, row, libraries)]
        report.facts.append(("loop module", f"{index['module']}, compiled by polyop {index['polyop']}"))
        report.facts += [("loop kernel", _description(row)) for row in rows]
        report.breaches += breaches
    except (ValueError, LookupError, TypeError, AttributeError) as problem:
        report.breaches.append(f"{member} cannot be read: {type(problem).__name__}: {problem}")


def has_loops(archive: Archive) -> bool:
    """Whether a wheel has compiled loop kernels."""
    return any(map(_is_index, archive.names))


def _is_index(member: str) -> bool:
    path = PurePosixPath(member)
    return path.parent.name == shipped.FOLDER and path.suffix == ".json"


def _description(row: Any) -> str:
    precise = ", precise" if row["precise"] else ""
    return f"{row['function']}({row['signature']})  [{', '.join(row['told'])}{precise}]"


def _index_breaches(
    archive: Archive, member: str, index: Any, libraries: Mapping[str, LibraryFile]
) -> Iterator[str]:
    """Yield each reason why polyop would use no kernel of an index."""
    rules = (
        ("format", shipped.FORMAT, "is written in format"),
        ("meaning", shipped.MEANING, "is of another polyop, at level"),
        ("abi", ABI_VERSION, "has ABI version"),
    )
    for key, ours, rule in rules:
        if index[key] != ours:
            yield f"{member} {rule} {index[key]}, and this polyop takes {ours}"
    folder = PurePosixPath(member).parent.parent
    module = str(folder / f"{PurePosixPath(member).stem}.py")
    if module not in archive.names:
        yield f"{member} is for {index['module']}, which is not inside"
    elif archive.digest(module).hex() != index["source"]:
        yield f"{member} was made from another {module}: the hashes differ"
    machines = {platforms.machine_tag(file.machine) for file in libraries.values()}
    if index["machine"] not in machines:
        yield f"{member} is for {index['machine']}, and no library is"


def _row_breaches(
    archive: Archive, member: str, row: Any, libraries: Mapping[str, LibraryFile]
) -> Iterator[str]:
    """Yield where the wheel differs from a row of an index."""
    library = str(PurePosixPath(member).with_name(row["library"]))
    if library not in libraries:
        yield f"{member} tells of {library}, which is not inside"
        return
    if archive.digest(library).hex() != row["sha256"]:
        yield f"{member} tells of another {library}: the hashes differ"
    names = list(row["told"])
    symbols = [row["symbol"], *(f"{row['symbol']}__{name}" for name in names if len(names) > 1)]
    exported = frozenset(libraries[library].functions)
    for name in symbols:
        if name not in exported:
            yield f"{library} has no function {name}"
