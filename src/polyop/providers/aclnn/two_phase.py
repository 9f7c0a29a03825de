"""aclnn's two-phase C interface: call its operators, and register those of an author's shared library."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from ...binary.diagnose import read
from ...binary.open import open_library
from ...core.errors import ArgumentValueError, KernelError, LibraryError
from ...core.origin import caller
from ...core.parse import parse
from ...core.schema import Schema
from .acl import HostMemory, Memory, Objects, Symbols, recent_error
from .registry import add, checked
from .row import Row

Allocator: TypeAlias = Callable[[int], int]
"""Takes a size in bytes, returns the address of a workspace that lives until the stream is done."""


def call(
    schema: Schema,
    values: Sequence[Any],
    symbols: Symbols,
    memory: Memory,
    *,
    stream: int | None = None,
    allocator: Allocator | None = None,
) -> None:
    """Run the operator of a prototype on arrays, and write the outputs among them.

    The workspace comes from ``allocator``, or without one from ``memory``. Raises ``KernelError`` with
    the library's message if a phase fails, and ``LibraryError`` if a function is missing.
    """
    first = symbols.get(f"{schema.name}GetWorkspaceSize")
    second = symbols.get(schema.name)
    with Objects(schema.name, symbols, memory).alive() as objects:
        arguments = [objects.of(a, value) for a, value in zip(schema.arguments, values, strict=True)]
        size, executor = ctypes.c_uint64(0), ctypes.c_void_p()
        status = first(*arguments, ctypes.byref(size), ctypes.byref(executor))
        _check(schema, "GetWorkspaceSize", status, symbols)
        workspace = (allocator or memory.workspace)(size.value) if size.value else None
        pointer = ctypes.c_void_p(workspace)
        status = second(pointer, size, executor, ctypes.c_void_p(stream))
        _check(schema, "", status, symbols)
        memory.finish(objects.written, stream)


def _check(schema: Schema, phase: str, status: int, symbols: Symbols) -> None:
    if status != 0:
        rule = f"{schema.name}{phase} returned {status}"
        raise KernelError(schema.name, rule, hint=recent_error(symbols) or f"its prototype: {schema}")


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
