"""A tensor as ``repr()`` shows it in MindSpore.

Floating values have a fixed width in scientific notation, others the width of the longest. A
dimension of more than six entries is shown without its middle.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

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
    """Return the part after ``value=``: NumPy's text, with MindSpore's cells, gaps and line breaks."""
    if array.size == 0:
        return ""
    if array.ndim == 0:
        return _scalar(array.item() if array.dtype.isbuiltin else array.astype(np.float32).item())
    form = CELLS.get(array.dtype.name, "{}")
    shown: list[str] = []

    def cell(value: Any) -> str:
        shown.append(form.format(value))
        return shown[-1].rjust(width)

    width = 0
    _text(array, cell)
    width, shown = max(map(len, shown)), []
    text = _text(array, cell)
    if array.ndim == 1 and len(shown) == array.size > 3:
        line = PER_LINE.get(array.dtype.name.rstrip("0123456789"), 24) * (width + len(", "))
        broken = re.sub(f"(.{{{line}}})", r"\1\n ", text[1:-1] + ", ")
        return "[" + re.sub(r", (\n )?$", r"\1", broken) + "]"
    return re.sub("\n+", "\n", text).replace(", ...,", " ...").replace("...,\n", "...\n")


def _text(array: np.ndarray[Any, Any], cell: Any) -> str:
    whole = LONGEST_ROW if array.ndim == 1 else 0  # without a middle: each dimension of more than six
    options: Any = {"threshold": whole, "edgeitems": 3, "formatter": {"all": cell}}
    return np.array2string(array, max_line_width=1 << 30, separator=", ", **options)


def _scalar(value: Any) -> str:
    if isinstance(value, complex):
        return CELLS["complex64"].format(value)
    return f"{value:g}" if isinstance(value, float) else str(value)
