"""Read ``op_doc`` files: the documentation of operators, their ``__doc__``."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Any

from .read import Place, load_yaml

# key: the title above its part
_PARTS = {"description": "", "args": "Args:", "returns": "Returns:", "examples": "Examples:"}


def read_op_docs(files: Iterable[str], operators: Iterable[str]) -> dict[str, str]:
    """Return a text for each operator in the files.

    Raises as ``read_op_defs`` does, and for an operator that is none of ``operators``.
    """
    known, texts = list(operators), {}
    for file in files:
        for name, entry in load_yaml(file, "op_doc").items():
            place = Place(file, name)
            if name not in known:
                place.fail(f"is not an operator of the op_def files; they have {', '.join(known) or 'none'}")
            if isinstance(entry, dict) and "dtype" in str(entry.get("args")) and "returns" in entry:
                place.fail("is the definition of an operator: pass this file as op_def")
            keys = place.mapping(entry, list(_PARTS))
            texts[name] = "\n\n".join(
                _part(place / key, title, keys[key]) for key, title in _PARTS.items() if keys.get(key)
            )
    return texts


def _part(place: Place, title: str, value: Any) -> str:
    """Return one part of a docstring from a text, or from a text for each name."""
    if isinstance(value, dict):
        if not all(isinstance(text, str) for text in value.values()):
            place.fail("must be a text, or a text for each name", value)
        value = "\n".join(f"{name}: {text.strip()}" for name, text in value.items())
    if not isinstance(value, str):
        place.fail("must be a text, or a text for each name", value)
    text = value.strip("\n").rstrip()
    return f"{title}\n{textwrap.indent(textwrap.dedent(text), '    ')}" if title else text.strip()
