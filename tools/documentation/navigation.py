"""The site's navigation: a section for each folder of docs/, in the order of a reader."""

from __future__ import annotations

import re
from pathlib import Path

SECTIONS = (
    # caption, folder, pages that come first
    ("Start", "docs/start", ()),
    ("Tutorials", "docs/tutorials", ()),
    ("Coming from", "docs/coming-from", ("index",)),
    (
        "Guides",
        "docs/guides",
        (
            "aot-kernels",
            "loop-kernels",
            "loop-gradients",
            "operator-libraries",
            "distributed",
            "operator-wheels",
        ),
    ),
    ("Hosts", "docs/hosts", ("numpy", "pytorch", "jax", "mindspore")),
    ("Examples", "examples", ("index",)),
    ("Reference", "docs/reference", ("api", "dims", "kernel-operators", "schedule")),
    ("Internals", "docs/internals", ("design", "loops", "passes", "call", "glossary")),
)
MORE = r"docs/[^/]+\.md|[A-Z]+\.md"
"""Pages that are in no section: those of docs/ itself, and of the project."""


def landing(readme: str, pages: set[str]) -> str:
    """Return the landing page: the text of README.md, and the contents of the sidebar.

    ``pages`` holds every page of the site by its path. Generated pages of files are not in the sidebar.
    """
    trees = []
    for caption, folder, first in SECTIONS:
        here = sorted(page for page in pages if re.fullmatch(rf"{folder}/[^/]+\.(md|ipynb)", page))
        here = [page for page in here if folder != "examples" or page == "examples/index.md"]
        rank = {f"{folder}/{name}": number for number, name in enumerate(first)}
        here.sort(key=lambda page: (rank.get(page.rpartition(".")[0], len(rank)), page))
        if here:
            trees.append(_tree(caption, here))
    trees.append(_tree("Project", sorted(page for page in pages if re.fullmatch(MORE, page))))
    return readme.rstrip("\n") + "\n\n" + "\n".join(trees)


def tree(pages: list[str], caption: str = "") -> str:
    """Return a table of contents that only the sidebar shows; the paths are seen from the page."""
    option = f":caption: {caption}\n" if caption else ""
    return "```{toctree}\n:hidden:\n" + option + "\n" + "\n".join(pages) + "\n```\n"


def _tree(caption: str, pages: list[str]) -> str:
    return tree([f"/{page}" for page in pages], caption)


def title(path: Path) -> str:
    """Return the first heading of a page."""
    return next(line[2:].strip() for line in path.read_text().splitlines() if line.startswith("# "))
