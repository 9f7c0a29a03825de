"""The API reference of the site: docs/reference/api.md, made of the docstrings, a page for each group."""

from __future__ import annotations

import re

from navigation import tree

_CODE = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)


def pages(text: str) -> dict[str, str]:
    """Return the pages by path: one for each heading of level two, and one that lists them."""
    groups: dict[str, str] = {}
    masked = _CODE.sub(lambda match: "x" * len(match[0]), text)  # a line of code may begin with "##"
    found = [(match.start(), match[1]) for match in re.finditer(r"^## (.+)$", masked, re.MULTILINE)]
    head = text[: found[0][0]]
    for (begin, title), (end, _) in zip(found, [*found[1:], (len(text), "")], strict=True):
        groups[title] = text[begin:end]
    names = {title: title.lower().replace(" ", "-") for title in groups}
    for title, name in names.items():
        anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        head = head.replace(f"(#{anchor})", f"(api/{name}.md)")
    made = {
        f"docs/reference/api/{names[title]}.md": re.sub(r"^#(#+ )", r"\1", body, flags=re.MULTILINE)
        for title, body in groups.items()
    }
    made["docs/reference/api.md"] = head + "\n" + tree([f"api/{name}" for name in names.values()])
    return made


def anchors(text: str) -> str:
    """Return a page's text with links to headings of api.md as links to the pages of the groups."""
    return re.sub(r"\(([^)#\s]*)api\.md#([\w-]+)\)", r"(\1api/\2.md)", text)
