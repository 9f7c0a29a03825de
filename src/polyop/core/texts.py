"""Format values for people: tables, amounts of memory; find names whatever the case of their letters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


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


def bytes_text(count: float) -> str:
    """Return a number of bytes in the largest unit of which there is one.

    >>> bytes_text(1000), bytes_text(3 << 20)
    ('1000 B', '3.0 MiB')
    """
    size, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size, units = size / 1024, units[1:]
    return f"{size:.0f} B" if units[0] == "B" else f"{size:.1f} {units[0]}"
