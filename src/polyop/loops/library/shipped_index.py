"""The index of a package's loop kernels, as far as it is what polyop writes: a package can be damaged."""

from __future__ import annotations

from typing import Any


def read(path: str) -> dict[str, Any]:
    """Return the index in a file.

    Of one in another format only that is checked, as nothing else of it is used. Raises ``OSError``, and
    ``ValueError`` for whatever is wrong.
    """
    from ...build import records

    index, _ = records.read(path)
    for name in ("format", "meaning", "abi"):
        records.int64(records.field(index, name))
    for name in ("machine", "source"):
        records.text(records.field(index, name))
    for row in records.rows(records.field(index, "kernels")):
        for name in ("function", "signature", "digest", "symbol", "passes"):
            records.text(records.field(row, name))
        records.base_name(records.field(row, "library"))
        records.hexadecimal(records.field(row, "sha256"), 64)
        _check_told(records.field(row, "told"))
    found: dict[str, Any] = index
    return found


def _check_told(told: Any) -> None:
    """Raise ``ValueError`` unless this says for instruction sets what became of each line."""
    from ...build import records

    if not isinstance(told, dict) or not told:
        raise ValueError("what was told is no table")
    for notes in told.values():
        for note in records.rows(notes):
            line, text = (*records.rows(note), None, None)[:2]
            records.int64(line)
            records.text(text)
