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
            "moving-a-network",
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
INSIDE = ("Internals", "Project")
"""Sections for those who work on polyop: their pages have a sidebar of their own."""

MORE = r"docs/[^/]+\.md|[A-Z]+\.md"
"""Pages that are in no section: those of docs/ itself, and of the project."""


def landing(template: str, readme: str, pages: set[str]) -> str:
    """Return the landing page: landing.md with the first example of README.md, and the sidebar's contents.

    ``pages`` holds every page of the site by its path. Generated pages of files are not in the sidebar.
    """
    example = re.findall(r"^```(?:sh|python)\n.*?^```$", readme, re.MULTILINE | re.DOTALL)[:3]
    trees = []
    for caption, folder, first in SECTIONS:
        here = sorted(page for page in pages if re.fullmatch(rf"{folder}/[^/]+\.(md|ipynb)", page))
        here = [page for page in here if folder != "examples" or page == "examples/index.md"]
        rank = {f"{folder}/{name}": number for number, name in enumerate(first)}
        here.sort(key=lambda page: (rank.get(page.rpartition(".")[0], len(rank)), page))
        if here:
            trees.append(_tree(caption, here))
    trees.append(_tree("Project", sorted(page for page in pages if re.fullmatch(MORE, page))))
    return template.replace("{first example}", "\n\n".join(example)) + "\n" + "\n".join(trees)


def part(tree: str, page: str) -> str:
    """Return the sections of a sidebar (HTML) that belong to a page, and a link to the others.

    The pages about the inside of polyop, and those of files, have one sidebar, all others another.
    """
    start, *sections = re.split(r'(?=<p class="caption")', tree)
    captions = [re.sub("<[^>]*>", "", section.partition("</p>")[0]) for section in sections]
    is_inside = page.startswith(("docs/internals/", "docs/design", "src/", "csrc/", "tests/", "tools/"))
    shown = [one for name, one in zip(captions, sections, strict=True) if (name in INSIDE) == is_inside]
    up = "../" * page.count("/")
    target, words = ("index", "Using polyop") if is_inside else ("docs/design", "The inside of polyop")
    link = f'<a class="reference internal" href="{up}{target}.html">{words}</a>'
    return f'{start}{"".join(shown)}<ul><li class="toctree-l1">{link}</li></ul>'


def tree(pages: list[str], caption: str = "") -> str:
    """Return a table of contents that only the sidebar shows; the paths are seen from the page."""
    option = f":caption: {caption}\n" if caption else ""
    return "```{toctree}\n:hidden:\n" + option + "\n" + "\n".join(pages) + "\n```\n"


def _tree(caption: str, pages: list[str]) -> str:
    return tree([f"/{page}" for page in pages], caption)


def title(path: Path) -> str:
    """Return the first heading of a page."""
    return next(line[2:].strip() for line in path.read_text().splitlines() if line.startswith("# "))
