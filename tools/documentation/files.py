"""Pages that show a file or list a folder of the project."""

from __future__ import annotations

import os
import re
from pathlib import Path

_LANGUAGES = {
    ".py": "python",
    ".c": "c",
    ".h": "cpp",
    ".hpp": "cpp",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".cu": "cpp",
    ".hip": "cpp",
    ".cl": "c",
    ".toml": "toml",
    ".json": "json",
    ".sh": "sh",
}
_HIDDEN = ("__pycache__", "__polyop__", "dist", "kernel_meta")
ORPHAN = "---\norphan: true\n---\n\n"
"""The head of a page that the sidebar does not list."""


def shown(path: Path, root: Path) -> str:
    """Return the page of a file: its path and its text."""
    text = path.read_text(encoding="utf-8").rstrip("\n")
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    language = _LANGUAGES.get(path.suffix, "text")
    return f"{ORPHAN}# {path.relative_to(root)}\n\n{fence}{language}\n{text}\n{fence}\n"


def entries(folder: Path) -> list[Path]:
    """Return the files and folders that the page of a folder lists, sorted."""
    return sorted(
        each
        for each in folder.iterdir()
        if each.name not in _HIDDEN and not each.name.startswith(".") and not _is_built(each)
    )


def _is_built(path: Path) -> bool:
    """Return whether a folder holds what a build wrote; src/polyop/build is a package."""
    return path.name == "build" and not (path / "__init__.py").exists()


def listed(folder: Path, root: Path, *, orphan: bool = True) -> str:
    """Return the page of a folder: the text of its README.md, and links to what it holds."""
    readme = folder / "README.md"
    head = readme.read_text() if readme.exists() else f"# {folder.relative_to(root)}\n"
    links = [
        f"* [{each.name}{'/' * each.is_dir()}]({each.name})" for each in entries(folder) if _is_text(each)
    ]
    return (ORPHAN if orphan else "") + "\n".join([head.rstrip("\n"), "", "## Files", "", *links, ""])


def _is_text(path: Path) -> bool:
    if path.is_dir():
        return any(_is_text(each) for each in entries(path))
    with path.open("rb") as file:
        return b"\0" not in file.read(4096) and os.access(path, os.R_OK)
