"""Show what a wheel holds, and check what its name, tag and indexes promise; none of its code runs."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from ..binary.elf import LibraryFile, read
from ..binary.known_libraries import frameworks
from ..core.errors import LibraryError
from ..core.limits import read_json
from ..core.versions import ABI_VERSION
from ..kernels.module.function_table import VERSION
from ..loops.library import shipped
from . import platforms, requirement
from .archive import Archive
from .fatbin import architectures
from .information import FILE, FORMAT

_NAME = re.compile(
    r"(?P<name>[^-]+)-(?P<version>[^-]+)(-\d[^-]*)?-(?P<python>[^-]+)-(?P<abi>[^-]+)-(?P<tag>[^-]+)\.whl"
)
_UNSTABLE = ("PyTorch", "Python", "MindSpore")  # libraries whose versions are not binary compatible


@dataclass
class Report:
    """``facts`` are labels and texts, ``notes`` are remarks, ``breaches`` are promises that do not hold."""

    facts: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    breaches: list[str] = field(default_factory=list)


def audit(path: str | Path) -> Report:
    """Return the facts of the wheel at ``path``, and the rules that it breaks.

    Raises ``LibraryError`` for a file that is not a wheel.
    """
    path = Path(path)
    named = _NAME.fullmatch(path.name)
    if named is None:
        raise LibraryError(str(path), "must be called name-version-python-abi-platform.whl", repr(path.name))
    report = Report([("wheel", path.name)])
    with closing(Archive(path)) as archive, tempfile.TemporaryDirectory() as folder:
        _check_files(archive, report)
        torch = _check_metadata(archive, named, report)
        libraries = list(_libraries(archive, Path(folder), report))
        own = {PurePosixPath(one).name for one, _ in libraries}
        for member, file in libraries:
            _check_library(member, file, named, own, torch, report)
        _check_floors([file for _, file in libraries], named["tag"], report)
        _describe_operators(archive, torch, report)
        describe_loops(archive, dict(libraries), report)
    return report


def _check_files(archive: Archive, report: Report) -> None:
    record = next((name for name in archive.names if name.endswith(".dist-info/RECORD")), None)
    if record is None:
        report.breaches.append("it has no RECORD of its files")
        return
    try:
        rows = {row[0]: row[1] for row in csv.reader(io.StringIO(archive.text(record))) if row}
    except (csv.Error, IndexError) as problem:
        report.breaches.append(f"{record} is no list of files with hashes: {problem}")
        return
    for name, count in archive.names.items():
        if count > 1:
            report.breaches.append(f"{name} is in it {count} times")
        if name == record:
            continue
        kind, _, recorded = rows.get(name, "").partition("=")
        actual = base64.urlsafe_b64encode(archive.digest(name)).rstrip(b"=").decode()
        if name not in rows:
            report.breaches.append(f"{name} is not in its RECORD")
        elif kind == "sha256" and recorded != actual:
            report.breaches.append(f"{name} is not the file that its RECORD names: the hashes differ")


def _check_metadata(archive: Archive, named: re.Match[str], report: Report) -> str:
    """Return the version of PyTorch that the wheel requires, "" if it allows several or none."""
    torch = ""
    for member in archive.names:
        if member.endswith(".dist-info/WHEEL"):
            tags = re.findall(r"^Tag: (\S+)", archive.text(member), re.MULTILINE)
            expected = f"{named['python']}-{named['abi']}-{named['tag']}"
            expanded = {
                f"{python}-{abi}-{tag}"
                for python in named["python"].split(".")
                for abi in named["abi"].split(".")
                for tag in named["tag"].split(".")
            }
            if set(tags) != expanded:
                report.breaches.append(f"its name says {expected}, and its WHEEL file {', '.join(tags)}")
        if member.endswith(".dist-info/METADATA"):
            requirements = requirement.requirements(archive.text(member))
            torch = requirement.pinned(requirements)
            report.facts.append(("requires", ", ".join(requirements) or "nothing"))
            if not any(re.match(r"polyop\b", one) for one in requirements):
                report.notes.append('it does not require polyop: dependencies = ["polyop"] in pyproject.toml')
    return torch


def _libraries(archive: Archive, folder: Path, report: Report) -> Iterator[tuple[str, LibraryFile]]:
    for number, member in enumerate(archive.names):
        if not re.search(r"\.so(\.[\d.]+)?$", member):
            continue
        copy = folder / f"{number}.so"
        with copy.open("wb") as stream:
            archive.copy(member, stream)
        try:
            yield member, read(copy)
        except LibraryError as problem:
            rule = str(problem).replace(str(copy), member)
            report.breaches.append(f"{member} is no library: {rule}")


def _check_library(
    member: str, file: LibraryFile, named: re.Match[str], own: set[str], torch: str, report: Report
) -> None:
    report.facts.append(("library", f"{member} ({file.machine})"))
    report.facts.append(("needs", ", ".join(file.needed) or "nothing"))
    if gpus := architectures(file.path):
        report.facts.append(("CUDA", ", ".join(gpus)))
    machine = platforms.machine_tag(file.machine)
    if not all(tag.endswith(f"_{machine}") for tag in named["tag"].split(".")):
        report.breaches.append(f"{member} is for {machine}, and the tag says {named['tag']}")
    for framework in frameworks(file.needed, file.undefined):
        name = framework.partition(" ")[0]
        if name == "Python" and named["abi"] != "none":
            continue  # the tag names the Python
        if name == "PyTorch" and torch:
            continue  # the requirement names the PyTorch
        if name in _UNSTABLE:
            symbols = [one for one in file.undefined if list(frameworks([], [one]))][:3]
            examples = f", such as {', '.join(symbols)}" if symbols else ""
            rule = (
                "a wheel tagged py3-none must not" if named["abi"] == "none" else "no tag says which version"
            )
            if name == "PyTorch":
                rule += ", nor does a requirement, such as torch==2.13.*"
            report.breaches.append(f"{member} needs {framework}{examples}; {rule}")
        else:
            report.notes.append(f"{member} needs {framework}")
    foreign = [one for one in file.needed if not platforms.SYSTEM.fullmatch(one) and one not in own]
    foreign = [one for one in foreign if not (torch and requirement.is_pytorchs(one))]
    if foreign and platforms.promise(named["tag"]):
        listed = ", ".join(foreign)
        report.breaches.append(
            f"{member} needs {listed}, which {named['tag']} does not promise, nor is it inside"
        )
    if any(not path.startswith("$ORIGIN") for path in (file.runpath or "").split(":") if path):
        report.breaches.append(f"{member} looks for libraries in {file.runpath}, a folder of the builder")


def _check_floors(files: list[LibraryFile], tag: str, report: Report) -> None:
    if not files:
        report.notes.append("it has no compiled library")
        return
    needs = platforms.floors(one for file in files for one in file.versions)
    others = [
        f"{family} {_dotted(one)}" for family, one in needs.items() if one != (0,) and family != "GLIBC"
    ]
    report.facts.append(("glibc floor", _dotted(needs["GLIBC"])))
    report.facts.append(("GCC floor", ", ".join(others) or "none"))
    promises = [glibc for glibc in map(platforms.promise, tag.split(".")) if glibc]
    if not promises:
        report.notes.append(f"{tag} promises no glibc: pip takes it on any, and the index refuses it")
        return
    for family, most in platforms.allowed(min(promises)).items():
        if needs[family] > most:
            need, enough = _dotted(needs[family]), _dotted(most)
            report.breaches.append(f"it needs {family} {need}, and {tag} promises that {enough} is enough")


def _describe_operators(archive: Archive, torch: str, report: Report) -> None:
    records = [name for name in archive.names if PurePosixPath(name).name == FILE]
    if not records and not has_loops(archive):
        report.notes.append(f"it has no {FILE}: it was not built by polyop, or has no operators")
    for member in records:
        _describe_file(archive, member, torch, report)


def _describe_file(archive: Archive, member: str, torch: str, report: Report) -> None:
    try:
        _describe_record(archive, member, read_json(archive.text(member)), torch, report)
    except (ValueError, LookupError, TypeError, AttributeError) as problem:
        report.breaches.append(f"{member} cannot be read: {type(problem).__name__}: {problem}")


def _describe_record(archive: Archive, member: str, record: Any, torch: str, report: Report) -> None:
    if record["format"] != FORMAT:
        report.breaches.append(f"{member} has format {record['format']}, this polyop knows {FORMAT}")
        return
    library = str(PurePosixPath(member).with_name(record["library"]))
    if "torch" in record:
        report.facts.append(("PyTorch", str(record["torch"])))
        if record["torch"] != torch:
            required = f"requires PyTorch {torch}" if torch else "fixes no version of PyTorch"
            report.breaches.append(
                f"{library} was compiled for PyTorch {record['torch']}; the wheel {required}"
            )
    else:
        report.facts.append(("ABI version", f"{record['abi']} (this polyop: {VERSION})"))
    if record.get("abi", VERSION) != VERSION:
        report.breaches.append(f"{library} has ABI version {record['abi']}, and this polyop loads {VERSION}")
    if library not in archive.names:
        report.breaches.append(f"{member} tells of {library}, which is not inside")
    elif archive.digest(library).hex() != record["sha256"]:
        report.breaches.append(f"{member} tells of another {library}: the hashes differ")
    for one in record["operators"]:
        gradient = ", gradient" if one["gradient"] else ""
        keys = ", ".join(key for key in one["implementations"] if not key.startswith("Autograd"))
        report.facts.append(("operator", f"{one['schema']}  [{keys or 'no device'}{gradient}]"))
        if "dims" in one:
            keywords = [f"{keyword}={json.dumps(value)}" for keyword, value in one["dims"].items()]
            report.facts.append(("dimensions", ", ".join(keywords)))


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version)) if version != (0,) else "none"


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
