"""Texts for people: tables, amounts of memory, a caret under a place, the nearest of known names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_CONTEXT = 200
"""Characters that are shown before and after a place, and no more of a long text."""


def aligned(rows: Sequence[Sequence[str]], *, numbers_last: bool = False) -> list[str]:
    """Return rows of cells as lines, with each column as wide as its longest cell.

    Further lines of a last cell are indented below it. ``numbers_last``: the last column ends at the right.

    >>> aligned([("a", "bc"), ("abc", "d")])
    ['a    bc', 'abc  d']
    >>> aligned([("a", "7"), ("abc", "12")], numbers_last=True)
    ['a     7', 'abc  12']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    indent = " " * (sum(widths[:-1]) + 2 * len(widths[:-1]))
    lines = []
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        last = row[-1].rjust(widths[-1]) if numbers_last else row[-1].replace("\n", "\n" + indent)
        lines.append("  ".join([*cells, last]).rstrip())
    return lines


def by_small_letters(names: Iterable[str]) -> dict[str, str]:
    """Return the names by their small letters: to find the one that is meant, in letters of any case.

    >>> by_small_letters(["SoftMax"])["softMAX".lower()]
    'SoftMax'
    """
    return {name.lower(): name for name in names}


def first_line(problem: object) -> str:
    r"""Return the first line of an error's text, or the name of its class where it has no text.

    >>> first_line(ValueError("too large\nby far")), first_line(ValueError())
    ('too large', 'ValueError')
    """
    return (str(problem).strip() or type(problem).__name__).splitlines()[0]


def bytes_text(count: float) -> str:
    """Return a number of bytes in the largest unit of which there is one.

    >>> bytes_text(1000), bytes_text(3 << 20)
    ('1000 B', '3.0 MiB')
    """
    size, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size, units = size / 1024, units[1:]
    return f"{size:.0f} B" if units[0] == "B" else f"{size:.1f} {units[0]}"


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


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the question that names the nearest of the known names; None if none is near.

    >>> did_you_mean("flaot32", ["float32", "int8"])
    "did you mean 'float32'?"
    >>> did_you_mean("q", ["float32", "int8"])
    """
    import difflib

    near = difflib.get_close_matches(name, list(known), 1, cutoff)
    return f"did you mean {near[0]!r}?" if near else None
