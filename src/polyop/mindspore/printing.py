"""A tensor as ``repr()`` shows it in MindSpore.

Floating values have a fixed width in scientific notation, others the width of the longest. A
dimension of more than six entries is shown without its middle.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

EDGE = 3  # entries shown on either side of an omitted middle
LONGEST_ROW = 1000  # a vector up to this length is shown whole
PER_LINE = {"float": 12, "bool": 12}  # entries per line of a vector; 24 for other dtypes
CELLS = {  # dtype: format of an element
    "float16": "{:11.4e}",
    "float32": "{:15.8e}",
    "float64": "{:15.8e}",
    "bool": "{!s:>5}",
    "bfloat16": "{:g}",
    "complex64": "{0.real:g}{0.imag:+g}j",
    "complex128": "{0.real:g}{0.imag:+g}j",
}


def describe(array: np.ndarray[Any, Any], dtype: str) -> str:
    """Return MindSpore's ``repr`` of a tensor with these values; ``dtype`` is its name, as ``Float32``.

    >>> print(describe(np.array(6, np.float32), "Float32"))
    Tensor(shape=[], dtype=Float32, value= 6)
    >>> print(describe(np.eye(2, dtype=np.int32), "Int32"))
    Tensor(shape=[2, 2], dtype=Int32, value=
    [[1, 0],
     [0, 1]])
    """
    line = "\n" if array.ndim > 1 else " "
    return f"Tensor(shape={list(array.shape)}, dtype={dtype}, value={line}{values(array)})"


def values(array: np.ndarray[Any, Any]) -> str:
    """Return the part after ``value=``."""
    if array.size == 0:
        return ""
    if array.ndim == 0:
        return _scalar(array.item() if array.dtype.isbuiltin else array.astype(np.float32).item())
    form = CELLS.get(array.dtype.name, "{}")
    shown = [form.format(array[index]) for index in _shown(array.shape)]
    width = max(map(len, shown))
    cells = iter([text.rjust(width) for text in shown])
    kind = array.dtype.name.rstrip("0123456789")
    return _block(array.shape, cells, 0, PER_LINE.get(kind, 24))


def _scalar(value: Any) -> str:
    if isinstance(value, complex):
        return CELLS["complex64"].format(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _gap(shape: tuple[int, ...], depth: int) -> bool:
    alone = len(shape) == 1
    return shape[depth] > (LONGEST_ROW if alone else 2 * EDGE)


def _entries(shape: tuple[int, ...], depth: int) -> Iterator[int]:
    count = shape[depth]
    if not _gap(shape, depth):
        yield from range(count)
    else:
        yield from range(EDGE)
        yield from range(count - EDGE, count)


def _shown(shape: tuple[int, ...], head: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    if len(head) == len(shape):
        yield head
        return
    for i in _entries(shape, len(head)):
        yield from _shown(shape, (*head, i))


def _block(shape: tuple[int, ...], cells: Iterator[str], depth: int, per_line: int) -> str:
    gap = _gap(shape, depth)
    if depth == len(shape) - 1:
        row = [next(cells) for _ in _entries(shape, depth)]
        if gap:
            return f"[{', '.join(row[:EDGE])} ... {', '.join(row[EDGE:])}]"
        wraps = len(shape) == 1 and len(row) > EDGE
        text = ""
        for i, cell in enumerate(row, 1):
            text += cell + (", " if i < len(row) else "")
            text += "\n " if wraps and i % per_line == 0 else ""
        return f"[{text}]"
    rows = [_block(shape, cells, depth + 1, per_line) for _ in _entries(shape, depth)]
    line = "\n" + " " * (depth + 1)
    if not gap:
        return f"[{f',{line}'.join(rows)}]"
    head, tail = f",{line}".join(rows[:EDGE]), f",{line}".join(rows[EDGE:])
    return f"[{head},{line}...{line}{tail}]"
