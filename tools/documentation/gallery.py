"""The gallery: a card for each example, with a picture of what it computes, or of its code."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import drawings
import navigation

HEAD = "# Examples\n\n"
HEAD += "Each is a program that the tests run. A plot is drawn from what its own functions return.\n"


def examples(root: Path) -> list[Path]:
    """Return the folders of the examples, by number."""
    return sorted(path for path in (root / "examples").glob("[0-9]*_*") if path.is_dir())


def page(root: Path) -> str:
    """Return the page of all examples; those with a picture come first."""
    folders = sorted(examples(root), key=lambda path: (path.name not in drawings.DRAWN, path.name))
    cards = [_card(path) for path in folders]
    return f"{HEAD}\n:::::{{grid}} 1 2 2 3\n:gutter: 3\n\n" + "\n".join(cards) + "\n:::::\n"


def _card(folder: Path) -> str:
    title = folder.name.partition("_")[2].replace("_", " ")
    drawn = drawings.DRAWN.get(folder.name)
    alt = drawn.alt if drawn else "the first lines of its program"
    picture = f":img-top: {_file(folder)}\n:img-alt: {alt}\n"
    link = f":link: /examples/{folder.name}/index\n:link-type: doc\n"
    return f"::::{{grid-item-card}} {title}\n{link}{picture}\n{_about(folder)}\n::::\n"


def _file(folder: Path) -> str:
    """Return the name of an example's picture; one of code is dark in dark mode, by site.css."""
    return f"{folder.name}.svg" if folder.name in drawings.DRAWN else f"{folder.name}.code.svg"


def _about(folder: Path) -> str:
    """Return the first sentence of the example's program, or the heading of its README.md."""
    program = folder / "main.py"
    if program.exists():
        doc = ast.get_docstring(ast.parse(program.read_text())) or ""
        return re.split(r"(?<=\.)\s", doc.replace("\n", " "))[0]
    return navigation.title(folder / "README.md")


@functools.cache
def pictures(root: Path) -> dict[str, bytes]:
    """Return the pictures by file name; the examples' kernels run for them."""
    return {_file(path): drawings.draw(path.name, root) for path in examples(root)}
