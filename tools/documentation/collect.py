"""Collect the pages of the site: documents, tutorials, examples, and the files that they link to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import columns
import files
import gallery
import jupytext  # type: ignore[import-untyped]
import links
import navigation
import reference

HERE = Path(__file__).resolve().parent
PAGES = ("docs/**/*.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")


def collect(root: Path, folder: Path) -> None:
    """Write the pages of the project at ``root`` into a folder; files of earlier builds that are as new stay.

    Raises ``links.BrokenLink``.
    """
    pages = _Pages(root)
    for pattern in PAGES:
        for path in sorted(root.glob(pattern)):
            name = str(path.relative_to(root))
            pages.add(name, path.read_text(), path)
    for path in sorted(root.glob("docs/tutorials/*.py")):
        pages.texts[str(path.relative_to(root).with_suffix(".ipynb"))] = notebook(path, pages.rewritten)
    pages.add("examples/index.md", gallery.page(root), root / "examples" / "README.md")
    for path in gallery.examples(root):
        pages.linked(path)
    readme = root / "README.md"
    pages.add("README.md", readme.read_text(), readme)
    pages.files()
    pages.texts.update(reference.pages(pages.texts.pop("docs/reference/api.md")))
    template = pages.rewritten((HERE / "landing.md").read_text(), root / "README.md")
    pages.texts["index.md"] = navigation.landing(template, pages.texts["README.md"], set(pages.texts))
    pages.write(folder)


def notebook(path: Path, rewritten: Callable[[str, Path], str]) -> str:
    """Return a tutorial (Python with ``# %%`` cells) as the text of a Jupyter notebook, without outputs.

    ``rewritten`` returns the text of a cell with its links rewritten.
    """
    made = jupytext.read(path, fmt="py:percent")
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    for number, cell in enumerate(made.cells):
        if cell.cell_type == "markdown":
            cell["source"] = rewritten(cell["source"], path)
        cell["id"] = f"cell-{number}"  # otherwise random: each build would run every notebook again
    return str(jupytext.writes(made, fmt="ipynb"))


class _Pages:
    """Texts by their paths in the site, pictures, and files that still need a page."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.texts: dict[str, str] = {}
        self.pictures: set[Path] = set()
        self.waiting: list[Path] = []

    def add(self, name: str, text: str, path: Path) -> None:
        """Add a page whose links are seen from ``path``."""
        self.texts[name] = columns.rendered(self.rewritten(text, path))

    def rewritten(self, text: str, path: Path) -> str:
        """Return a text with its links as they are in the site."""
        return reference.anchors(links.rewrite(text, path, self.root, self.linked))

    def linked(self, path: Path) -> None:
        """Remember a file or a folder that a link leads to."""
        if path.suffix in links.PICTURES:
            self.pictures.add(path)
        else:
            self.waiting.append(path)

    def files(self) -> None:
        """Add a page for each file and folder that a link leads to, also a link of these pages."""
        while self.waiting:
            path = self.waiting.pop()
            name = str(path.relative_to(self.root))
            name += "/index.md" if path.is_dir() else ".md" * (path.suffix != ".md")
            if name in self.texts:
                continue
            if path.suffix == ".md":
                self.add(name, f"{files.ORPHAN}{path.read_text()}", path)
            elif path.is_dir():
                self.add(name, files.listed(path, self.root), path / "README.md")
            else:
                self.texts[name] = files.shown(path, self.root)

    def write(self, folder: Path) -> None:
        """Write everything, and remove what an earlier build wrote and this one does not."""
        wanted = {folder / name: text.encode() for name, text in self.texts.items()}
        wanted |= {folder / path.relative_to(self.root): path.read_bytes() for path in self.pictures}
        wanted |= {folder / "examples" / name: text for name, text in gallery.pictures(self.root).items()}
        for path in folder.rglob("*"):
            if path.is_file() and path not in wanted:
                path.unlink()
        for path, data in wanted.items():
            if not path.exists() or path.read_bytes() != data:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
