"""Read and check the index of the loop kernels of a package; the file may be damaged."""

from __future__ import annotations

from typing import Any


def read(path: str) -> dict[str, Any]:
    """Return the index in a file. Raises ``OSError``, and ``ValueError`` for any field that is wrong."""
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
        _check_notes(records.field(row, "told"))
    checked: dict[str, Any] = index
    return checked


def _check_notes(table: Any) -> None:
    """Raise ``ValueError`` unless this is a table of notes, (line, text), by instruction set."""
    from ...build import records

    if not isinstance(table, dict) or not table:
        raise ValueError("the notes are not a table by instruction set")
    for notes in table.values():
        for note in records.rows(notes):
            line, text = (*records.rows(note), None, None)[:2]
            records.int64(line)
            records.text(text)
