"""What a wheel says of the loop kernels that it brings compiled, and whether its libraries are those."""

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
    """Add the loop kernels of every index in a wheel to a report, and what breaks their promise."""
    for member in filter(_is_index, archive.names):
        _describe_index(archive, member, libraries, report)


def _describe_index(
    archive: Archive, member: str, libraries: Mapping[str, LibraryFile], report: Report
) -> None:
    try:
        index = read_json(archive.text(member))
        odd = list(_odd(archive, member, index, libraries))
        rows = index["kernels"]
        odd += [text for row in rows for text in _wrong(archive, member, row, libraries)]
        report.facts.append(("loop module", f"{index['module']}, compiled by polyop {index['polyop']}"))
        report.facts += [("loop kernel", _told(row)) for row in rows]
        report.breaches += odd
    except (ValueError, LookupError, TypeError, AttributeError) as problem:
        report.breaches.append(f"{member} cannot be read: {type(problem).__name__}: {problem}")


def has_loops(archive: Archive) -> bool:
    """Whether a wheel brings loop kernels."""
    return any(map(_is_index, archive.names))


def _is_index(member: str) -> bool:
    path = PurePosixPath(member)
    return path.parent.name == shipped.FOLDER and path.suffix == ".json"


def _told(row: Any) -> str:
    precise = ", precise" if row["precise"] else ""
    return f"{row['function']}({row['signature']})  [{', '.join(row['told'])}{precise}]"


def _odd(archive: Archive, member: str, index: Any, libraries: Mapping[str, LibraryFile]) -> Iterator[str]:
    """Yield why nothing of an index would be used."""
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


def _wrong(archive: Archive, member: str, row: Any, libraries: Mapping[str, LibraryFile]) -> Iterator[str]:
    """Yield what is not as a row of an index says."""
    library = str(PurePosixPath(member).with_name(row["library"]))
    if library not in libraries:
        yield f"{member} tells of {library}, which is not inside"
        return
    if archive.digest(library).hex() != row["sha256"]:
        yield f"{member} tells of another {library}: the hashes differ"
    names = list(row["told"])
    wanted = [row["symbol"], *(f"{row['symbol']}__{name}" for name in names if len(names) > 1)]
    offered = frozenset(libraries[library].functions)
    for name in wanted:
        if name not in offered:
            yield f"{library} has no function {name}"
