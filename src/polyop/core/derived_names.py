"""Name what polyop derives from an operator; messages call it by its author's words instead.

>>> backward = derived_name("demo::f__backward", "backward", "demo::f")
>>> in_words(f"{backward}: argument x")
'the gradient of demo::f: argument x'
"""

from __future__ import annotations

import re
from typing import Protocol, TypeVar

_WORDS = {
    "backward": "the gradient of {}",
    "tangent": "the tangent of {}",
    "batched": "vmap of {}",
    "keyed": "{} with a key",
    "padded": "{} with size=",
}
"""What is derived, in words. Anything else runs where its author calls the operator, and is called so."""
_owners: dict[str, tuple[str, str]] = {}
_NAME = re.compile(r"(?P<before>(?:loop )?kernel )?(?<![\w:])(?P<name>(?:\w+::)?\w+(?:\.\w+)?)")


def derived_name(name: str, kind: str, owner: str) -> str:
    """Note that polyop derives an operator or a kernel from another one; return its name.

    ``kind`` is a suffix, as ``backward`` of ``f__backward``. Names of operators are qualified.
    """
    _owners[name] = kind, owner
    return name


class Named(Protocol):
    """A schema."""

    @property
    def qualified_name(self) -> str:
        """The name of its operator."""


Schema = TypeVar("Schema", bound=Named)


def derived_from(owner: Named, kind: str, schema: Schema) -> Schema:
    """Note that polyop derives the operator of ``schema`` from that of ``owner``; return ``schema``."""
    derived_name(schema.qualified_name, kind, owner.qualified_name)
    return schema


def in_words(text: str) -> str:
    """Return the text with words in place of names that polyop has derived."""
    return _NAME.sub(_said, text) if _owners else text


def _said(match: re.Match[str]) -> str:
    return _words(match["name"], match["before"] or "") if match["name"] in _owners else match[0]


def _words(name: str, before: str) -> str:
    kind, owner = _owners.get(name, ("", ""))
    return _WORDS.get(kind, "{}").format(_words(owner, before)) if owner else f"{before}{name}"
