"""The parameters that a kernel in C is called with, those of ``polyop_kernel`` in ``polyop/abi.h``."""

from __future__ import annotations

from collections.abc import Sequence

CONTRACT = (  # parameter, its type in abi.h, the types that are as good
    ("nparam", "int", "int32"),
    ("params", "void **", r"void\*|.+\*\*"),
    ("ndims", "int *", r"void\*|int32\*"),
    ("shapes", "int64_t **", r"void\*\*?|int64\*\*"),
    ("dtypes", "const char **", r"void\*\*?|(char|u?int8)\*\*"),
    ("stream", "void *", r".+\*"),
    ("extra", "void *", r".+\*"),
)
"""Types are written as in ``int64**``: without blanks and ``const``, integers by their width."""
INIT = (*CONTRACT[2:5], CONTRACT[6])
"""The parameters of ``<Func>Init``."""


def declaration(name: str, rows: Sequence[tuple[str, str, str]] = CONTRACT) -> str:
    """Return how a function of this name is declared.

    >>> declaration("fInit", INIT)
    'int fInit(int *ndims, int64_t **shapes, const char **dtypes, void *extra)'
    """
    parameters = (f"{text}{'' if text.endswith('*') else ' '}{parameter}" for parameter, text, _ in rows)
    return f"int {name}({', '.join(parameters)})"
