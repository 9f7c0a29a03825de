"""Read what a C++ operator library registers; include/polyop/library/registry.h has the format."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ... import _core
from ...binary.open import opened
from .function_table import read_table

ENTRY, LINK = "polyop_library", "polyop_library_link"

KEYS = (
    "CPU",
    "CUDA",
    "PrivateUse1",
    "Meta",
    "AutogradCPU",
    "AutogradCUDA",
    "AutogradPrivateUse1",
    "Autograd",
    "CompositeImplicitAutograd",
)
"""The dispatch keys that functions can be registered for."""

_HINT = "write POLYOP_LIBRARY(namespace, m) { m.def(...); } after #include <polyop/library.h>"


@dataclass(frozen=True)
class Row:
    """One registration; ``place`` is ``file:line`` of its block in the source.

    The other fields depend on ``kind``:

    ``library``, ``fragment``  a block; ``name`` is its namespace.
    ``implementations``        a block of implementations; ``name`` is its namespace.
    ``schema``                 ``text`` is the argument of m.def; ``address`` is the function to call.
    ``implementation``         ``key`` is the dispatch key, ``text`` the function's types as in a schema,
                               ``spelled`` its C++ type.
    """

    kind: str
    name: str
    text: str
    address: int
    place: str
    key: str = ""
    spelled: str = ""

    @property
    def namespace(self) -> str:
        """The part of the name before ``::``."""
        return self.name.partition("::")[0]


def open_rows(path: Path) -> tuple[Row, ...]:
    """Return the registrations of the library at ``path``, in the order of its files.

    Raises ``LibraryError`` as :func:`read_table` does, and for a library that registers nothing.
    """
    _, rows = read_table(path, ENTRY, str(path), _HINT)
    return tuple(
        Row(kind, name, text, address, *(line.strip() for line in more))
        for address, name, text, doc in rows
        for kind, *more in [doc.split("\n", 3)]
    )


def link(paths: Sequence[Path]) -> None:
    """Let the C++ of the last library call the operators of all others, and the other way round."""
    entry = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    entries = [entry(_core.find_symbol(opened(path), LINK)) for path in paths]
    new = entries[-1]
    for other in entries[:-1]:
        other(new(None))
        new(other(None))
