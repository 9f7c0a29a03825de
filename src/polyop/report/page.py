"""Render facts to one HTML file: Jinja2 fills in the templates, Pygments colours the code."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..bench.as_text import time_text
from ..core.errors import BuildError
from . import figures
from .units import amount, percent
from .values import Facts

TEMPLATES = Path(__file__).parent / "templates"
MAX_COLOURED = 150_000
"""Characters of a text that is coloured: each word is a node of the page."""
NEEDS = "jinja2", "pygments"


def need_libraries() -> None:
    """Raise ``BuildError`` with the command that installs what is missing."""
    import importlib.util

    missing = [name for name in NEEDS if importlib.util.find_spec(name) is None]
    if missing:
        rule = f"needs {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed"
        raise BuildError("a report", rule, hint="pip install 'polyop[report]'")


def page(facts: Facts) -> str:
    """Return the whole HTML file. Raises ``BuildError`` without Jinja2 or Pygments."""
    need_libraries()
    import jinja2

    loader = jinja2.FileSystemLoader(TEMPLATES)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {"amount": amount, "time": time_text, "percent": percent}
    return environment.get_template("page.html.j2").render(
        facts=facts,
        css=_text("style.css"),
        js=_text("page.js"),
        code=coloured,
        roofline=figures.roofline(facts.measured),
        by_threads=figures.by_threads(facts.measured),
        grid=figures.grid,
        plot=figures,
    )


def _text(name: str) -> Any:
    import markupsafe

    text = (TEMPLATES / name).read_text(encoding="utf-8")
    return markupsafe.Markup(text)  # noqa: S704 - our own style sheet and script


def coloured(texts: Sequence[str], language: str) -> list[Any]:
    """Return lines of code as HTML, coloured by Pygments' classes; ``language`` is a name of its lexers.

    >>> [str(line) for line in coloured(["x = 1"], "python")]
    ['<span class="n">x</span> <span class="o">=</span> <span class="mi">1</span>']
    """
    import markupsafe
    from pygments.lexers import get_lexer_by_name
    from pygments.token import STANDARD_TYPES

    if sum(map(len, texts)) > MAX_COLOURED:
        return [markupsafe.escape(text) for text in texts]
    lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    lines: list[list[str]] = [[]]
    for kind, value in lexer.get_tokens("\n".join(texts)):
        name = _class(kind, STANDARD_TYPES)
        for number, part in enumerate(value.split("\n")):
            if number:
                lines.append([])
            if part:
                text = html.escape(part, quote=False)
                lines[-1].append(f'<span class="{name}">{text}</span>' if name else text)
    return [markupsafe.Markup("".join(line)) for line in lines]  # noqa: S704 - each part was escaped above


def _class(kind: Any, known: Any) -> str:
    """Return the short class of a token type; whitespace has none."""
    while kind not in known:
        kind = kind.parent
    name = str(known[kind])
    return "" if name in ("w", "") else name
