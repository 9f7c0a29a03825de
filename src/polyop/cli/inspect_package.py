"""``polyop inspect`` of a file that has libraries inside: a wheel, or a package of AOTInductor (.pt2)."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path, PurePosixPath

from ..binary.elf import read
from ..core.errors import LibraryError
from ..wheel.archive import Archive
from ..wheel.audit import audit
from .inspect_kinds import kinds
from .terminal import fact, say_json


def is_package(path: str) -> bool:
    """Return whether a file is a zip file: a wheel, a .pt2 package, or another one."""
    return Path(path).is_file() and zipfile.is_zipfile(path)


def show_package(path: str, *, as_json: bool) -> int:
    """Print what a package contains, and run none of it; return 0. Raises ``LibraryError``."""
    rows = list(audit(path).facts) if path.endswith(".whl") else _libraries(path)
    if as_json:
        labels: dict[str, list[str]] = {}
        for label, text in rows:
            labels.setdefault(label, []).append(text)
        say_json({"facts": labels})
        return 0
    for label, text in rows:
        fact(label, text)
    return 0


def _libraries(path: str) -> list[tuple[str, str]]:
    """Return the facts about each library in a zip file."""
    archive = Archive(Path(path))
    rows = [("package", path)]
    try:
        names = [name for name in archive.names if PurePosixPath(name).suffix == ".so"]
        if not names:
            rule, hint = "must have a shared library in it", "polyop inspect takes wheels and .pt2 packages"
            raise LibraryError(path, rule, f"{len(archive.names)} other files", hint=hint)
        for name in names:
            with tempfile.NamedTemporaryFile(suffix=".so") as file:
                archive.copy(name, file)
                file.flush()
                library = read(file.name)
            rows += [("library", f"{name} ({library.machine})"), *(("kind", text) for text in kinds(library))]
            rows.append(("needs", ", ".join(library.needed) or "none"))
    finally:
        archive.close()
    return rows
