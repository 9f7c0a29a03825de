"""The PyTorch that a wheel requires: code that is compiled for one version runs with that one only."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from ..binary.elf import LibraryFile
from ..binary.known_libraries import frameworks

_PINNED = r"torch\s*\(?\s*(?:==\s*(\d+\.\d+)(?:\.\d+|\.\*)|~=\s*(\d+\.\d+)\.\d+)\)?\s*(?:;|$)"


def needs_python(file: LibraryFile) -> bool:
    """Whether a library is for one Python: it uses its symbols, or PyTorch's part for Python."""
    used = any(framework.startswith("Python") for framework in frameworks(file.needed, file.undefined))
    return used or any(name.startswith("libtorch_python") for name in file.needed)


def is_pytorchs(library: str) -> bool:
    """Whether a library that another one needs comes with PyTorch.

    >>> is_pytorchs("libc10.so"), is_pytorchs("libblas.so.3")
    (True, False)
    """
    return any(one.startswith("PyTorch") for one in frameworks([library], []))


def pinned(requirements: Iterable[str]) -> str:
    """Return the version of PyTorch that requirements fix, "" if they allow several or name none.

    >>> pinned(["polyop", "torch ==2.13.*"]), pinned(["torch>=2.10"])
    ('2.13', '')
    """
    matches = (re.match(_PINNED, one) for one in requirements)
    return next((match[1] or match[2] for match in matches if match), "")


def requirements(metadata: str) -> list[str]:
    """Return what a METADATA file requires."""
    return re.findall(r"^Requires-Dist: (.+?)\s*$", metadata, re.MULTILINE)


def require(metadata: Path, version: str) -> None:
    """Add to a METADATA file that it requires a version of PyTorch, as "2.13"; unless it fixes one."""
    text = metadata.read_text(encoding="utf-8")
    if not pinned(requirements(text)):
        head, blank, body = text.partition("\n\n")
        line = f"Requires-Dist: torch=={version}.*"
        metadata.write_text(f"{head.rstrip()}\n{line}{blank or chr(10)}{body}", encoding="utf-8")
