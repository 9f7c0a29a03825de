"""Registers operators of an author's shared library with aclnn's two-phase C interface."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ...binary.diagnose import read
from ...binary.open import open_library
from ...core.errors import ArgumentValueError, LibraryError
from ...core.origin import caller
from ...core.parse import parse
from .acl import HostMemory, Symbols
from .registry import add, checked
from .row import Row
from .two_phase import call

_END = "GetWorkspaceSize"


def pairs(path: str | Path) -> list[str]:
    """Return the operators of which a library exports both phases, sorted by name.

    None of the library's code runs. Raises ``LibraryError`` for a file that is no library.
    """
    functions = set(read(path).functions)
    candidates = (name.removesuffix(_END) for name in functions if name.endswith(_END))
    return sorted(name for name in candidates if name in functions and name.startswith("aclnn"))


def register_library(path: str | Path, prototypes: Iterable[str]) -> list[str]:
    """Register operators of a library that works on the CPU's memory; return their names.

    A library records no types, so each operator needs a prototype: the arguments of
    ``aclnn<Name>GetWorkspaceSize`` without the last two. ``Tensor`` is an ``aclTensor``,
    ``Scalar`` an ``aclScalar``, ``int[]`` an ``aclIntArray``, ``int`` an ``int64_t``,
    ``float`` a ``double``. Operators without a prototype are not registered.

    Raises ``LibraryError`` for a file that cannot be opened or lacks a phase,
    ``ArgumentTypeError`` for a file outside the folders that POLYOP_LIBRARY_PATHS allows,
    ``SchemaError`` for a wrong prototype, and ``ArgumentValueError`` for no prototypes or a name that
    is already registered.
    """
    where, exported, texts = caller(), pairs(path), list(prototypes)
    listed = ", ".join(exported) or "none"
    if not exported:
        rule = f"must export both aclnn<Name>{_END} and aclnn<Name>, as C functions"
        raise LibraryError(path, rule, ", ".join(read(path).functions[:12]) or "no functions")
    if not texts:
        rule = f"needs a prototype for each operator that is to be called; it has {listed}"
        raise ArgumentValueError(
            path, rule, hint='as "aclnnAddCustom(Tensor x, Tensor y, Tensor(a!) z) -> ()"'
        )
    library = ctypes.CDLL(str(path), handle=open_library(path))
    symbols = Symbols([library, ctypes.CDLL(None)], str(path))
    rows = []
    for text in texts:
        row = checked(Row(text, _array_function, where=where, direct=partial(_run, parse(text), symbols)))
        if row.name not in exported:
            raise LibraryError(path, f"has no {row.name} of two phases; it has {listed}", where=where)
        rows.append(row)
    add(rows)
    return [row.name for row in rows]


def _run(schema: Any, symbols: Symbols, values: Sequence[Any]) -> None:
    call(schema, values, symbols, HostMemory())


def _array_function(*_: Any) -> Any:
    raise NotImplementedError
