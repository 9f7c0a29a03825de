"""Show a place in an author's text: the line, and a caret under the place."""

from __future__ import annotations

_CONTEXT = 200
"""Characters that are shown before and after the place."""


def with_caret(rule: str, text: str, position: int) -> str:
    """Return ``rule`` with the text below it, and a caret under ``text[position]``.

    >>> print(with_caret("needs a name here", "b i, 4x", 5))
    needs a name here
      b i, 4x
           ^
    """
    first = max(position - _CONTEXT, 0) if len(text) > 2 * _CONTEXT else 0
    last = max(first + 2 * _CONTEXT, position)
    line = ("..." if first else "") + text[first:last] + ("..." if last < len(text) else "")
    caret = " " * (position - first + (3 if first else 0))
    return f"{rule}\n  {line}\n  {caret}^"
