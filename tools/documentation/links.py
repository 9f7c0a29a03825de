"""Links of a page: rewritten so that each one leads to a page of the site.

The site has the folders of the project, so links between pages stay as they are. A link to another file leads
to a page that shows the file; a link to a folder leads to the page that lists it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

_PLAIN = re.compile(r"(^(?P<fence>`{3,}|~{3,}).*?^(?P=fence)|`[^`\n]+`)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?P<mark>!?)\[(?P<text>[^\[\]]*)\]\((?P<target>[^)#:\s]*)(?:#[^)\s]*)?\)")
PICTURES = (".svg", ".png")


class BrokenLink(Exception):  # noqa: N818 - a sentence: what is broken
    """A link of a page leads nowhere."""


def rewrite(text: str, page: Path, root: Path, found: Callable[[Path], None]) -> str:
    """Return the page's text with its links rewritten; ``found`` is called with each file.

    Links inside code stay. Raises ``BrokenLink`` for a link to a file that is not there, or outside ``root``.
    """

    def replaced(match: re.Match[str]) -> str:
        target = match["target"]
        if not target:
            return match[0]
        path = (page.parent / target).resolve()
        if not path.exists() or not path.is_relative_to(root):
            raise BrokenLink(f"{page.relative_to(root)}: the link {target} leads to no file of the project")
        if path.suffix == ".py" and path.parent == root / "docs" / "tutorials":
            return f"[{match['text']}]({target.removesuffix('.py')}.ipynb)"
        if path.name == "README.md" and path.parent != root:
            path, target = path.parent, target.removesuffix("README.md")
        found(path)
        if path.suffix == ".md" or (path.suffix in PICTURES and match["mark"]):
            return match[0]
        address = f"{target.rstrip('/') or '.'}/index.md" if path.is_dir() else f"{target}.md"
        return f"[{match['text']}]({address})"

    code: list[str] = []

    def put_aside(match: re.Match[str]) -> str:
        code.append(match[0])
        return f"\x00{len(code) - 1}\x00"

    plain = _LINK.sub(replaced, _PLAIN.sub(put_aside, text))
    return re.sub(r"\x00(\d+)\x00", lambda match: code[int(match[1])], plain)
