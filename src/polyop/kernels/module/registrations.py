"""What an operator library registers, read off its table: include/polyop/library/registry.h has its form."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ... import _core
from ...binary.open import opened
from .library import read_table

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
"""The keys that functions are registered for."""

_HINT = "write POLYOP_LIBRARY(namespace, m) { m.def(...); } after #include <polyop/library.h>"


@dataclass(frozen=True)
class Row:
    """One registration. ``place`` is ``file:line`` of its block.

    ``kind`` is ``library`` or ``fragment`` (``name``: the namespace), ``schema`` (``text``: what
    m.def was given; ``address`` is called), ``implementation`` (``text``: the types in a schema's
    words; ``key``; ``spelled``: the C++ type), or ``implementations``.
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
    """Make the operators of the last library and of all others known to each other's C++."""
    entry = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    found = [entry(_core.find_symbol(opened(path), LINK)) for path in paths]
    new = found[-1]
    for other in found[:-1]:
        other(new(None))
        new(other(None))
