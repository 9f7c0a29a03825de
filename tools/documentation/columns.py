"""Blocks beside each other.

Between ``<!-- columns -->`` and ``<!-- /columns -->`` a page has paragraphs ``**Title**``, each followed by
what belongs to it. As plain Markdown one follows the other; on the site they are columns in a wide window.
"""

from __future__ import annotations

import re

_COLUMNS = re.compile(r"^<!-- columns -->\n(.*?)^<!-- /columns -->$", re.DOTALL | re.MULTILINE)
_TITLE = re.compile(r"^\*\*([^*\n]+)\*\*$", re.MULTILINE)


def rendered(text: str) -> str:
    """Return the page's text with its columns as directives of sphinx-design."""
    return _COLUMNS.sub(lambda match: _grid(match[1]), text)


def _grid(text: str) -> str:
    _, *parts = _TITLE.split(text)
    items = zip(parts[::2], parts[1::2], strict=True)
    columns = [f":::{{grid-item}}\n**{title}**\n\n{body.strip()}\n:::\n" for title, body in items]
    return f"::::{{grid}} 1 1 2 {len(columns)}\n:gutter: 2\n\n" + "\n".join(columns) + "::::"
