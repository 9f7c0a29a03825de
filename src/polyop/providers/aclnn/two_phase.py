"""Calls an operator in aclnn's two phases: the first returns the workspace size, the second computes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ...core.errors import KernelError
from ...core.schema import Schema
from .acl import Memory, Objects, Symbols, recent_error

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
