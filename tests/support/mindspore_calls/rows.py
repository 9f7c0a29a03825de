"""All rows, and the names that they cover."""

from __future__ import annotations

from . import calls, cells, functions

ROWS = [*functions.ROWS, *cells.ROWS]


def covered() -> set[str]:
    """Return each name that a row has, such as ``ops.abs`` and ``Tensor.sum``."""
    return {calls.name_of(name) for row in ROWS for name in calls.listed(row.names)}
