"""Read the manifest of a library of ``polyop export``: JSON in the file, read without loading it."""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core.errors import LibraryError
from ..core.limits import read_json
from .file_kind import subject_of

MARK = "polyop-export-manifest:"
"""What the text begins with in the file; a zero byte ends it."""
FORMAT = 2
"""Goes up when the layout of the text changes."""
_MAX_BYTES = 64 * 2**20
_OPERATOR = {
    "name": str,
    "schema": str,
    "c": str,
    "kernels": list,
    "outputs": list,
    "fixed": dict,
    "notation": dict,
    "backward": str,
    "no_backward": str,
    "doc": str,
    "not_for": dict,
}
"""The types of an operator's values. "infer" has any: it is what ``infer=`` takes, or null."""


def kernel_symbol(c_name: str) -> str:
    """Return the symbol of the kernel that polyop calls, for the name of the operator's C function.

    >>> kernel_symbol("myops_scale")
    'polyop_exported_myops_scale'
    """
    return f"polyop_exported_{c_name}"


def is_exported(path: str | Path) -> bool:
    """Whether the file at ``path`` is a library of ``polyop export``, with any manifest."""
    return _text(path) is not None


def read(path: str | Path) -> dict[str, Any] | None:
    """Return the manifest of a library, or None if the file is no exported library. Nothing is loaded.

    Raises ``LibraryError`` for a damaged manifest, and for one of another format than this polyop knows.
    """
    text = _text(path)
    if text is None:
        return None
    try:
        values = read_json(text)
    except ValueError as problem:
        raise _damaged(path, str(problem)) from None
    if not isinstance(values, dict):
        raise _damaged(path, "it must be an object")
    if values.get("format") != FORMAT:
        rule = f"has a manifest of format {values.get('format')!r:.20}, and this polyop knows {FORMAT}"
        hint = "export it again with this polyop, or use the version that exported it"
        raise LibraryError(subject_of(path), rule, hint=hint)
    rows = values.get("operators")
    if not isinstance(rows, list) or not isinstance(values.get("register_torch"), str):
        raise _damaged(path, "its operators are missing")
    for row in rows:
        reason = _row_problem(row)
        if reason:
            raise _damaged(path, reason)
    return values


def _text(path: str | Path) -> bytes | None:
    if not Path(path).is_file():  # to open a pipe waits for a writer
        return None
    try:
        with Path(path).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            start = data.rfind(MARK.encode())
            if start < 0:
                return None
            start += len(MARK)
            end = data.find(b"\0", start, start + _MAX_BYTES)
            return data[start : max(start, end)]
    except (OSError, ValueError):  # no file, or an empty one: who opens it says so
        return None


def _row_problem(row: object) -> str:
    if not isinstance(row, Mapping):
        return "an operator must be an object"
    for name, kind in _OPERATOR.items():
        if not isinstance(row.get(name), kind):
            return f"{name} of an operator must be of type {kind.__name__}"
    if len(row["outputs"]) not in (0, len(row["kernels"])):
        return f"outputs of {row['name']:.80} must have an entry for each kernel"
    return next((problem for one in row["kernels"] if (problem := _kernel_problem(one))), "")


def _kernel_problem(kernel: object) -> str:
    rows = list(kernel.values()) if isinstance(kernel, dict) else [None]
    for row in rows:
        if not isinstance(row, dict):
            return "a kernel must be an object of objects"
        dtypes, rank = row.get("dtypes"), row.get("dimensions")
        if not (dtypes is None or (isinstance(dtypes, list) and all(isinstance(one, str) for one in dtypes))):
            return "dtypes of a kernel must be null or a list of names"
        if not (rank is None or type(rank) is int):
            return "dimensions of a kernel must be null or a number"
    return ""


def _damaged(path: str | Path, reason: str) -> LibraryError:
    rule = f"is a library of polyop export, and its manifest is damaged: {reason}"
    return LibraryError(subject_of(path), rule, hint="export or copy it again")
