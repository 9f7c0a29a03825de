"""Calls CANN, if it is installed: finds its libraries, opens them, and uses their C interface.

This has been tested with a small library of the same interface, never on Ascend hardware. No library
is opened before the first use.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import HostError, UnsupportedError
from ...core.schema import Schema
from .acl import Symbols, Written, recent_error
from .two_phase import Allocator, call

_CUSTOM = Path("op_api") / "lib" / "libcust_opapi.so"
_VARIABLES = ("ASCEND_CUSTOM_OPP_PATH", "ASCEND_OPP_PATH", "ASCEND_HOME_PATH", "LD_LIBRARY_PATH")
_RUNTIME = ("libascendcl.so", "libnnopbase.so")
_REPEATED = 100002  # aclInit's status if it was called before
_TO_DEVICE, _TO_HOST = 1, 2


def operator_libraries() -> Iterator[str]:
    """Yield the paths of operator libraries in search order.

    First come custom operators of ``ASCEND_CUSTOM_OPP_PATH``, then those of vendors in the order of
    CANN's ``config.ini``, then CANN's own.
    """
    for entry in _entries("ASCEND_CUSTOM_OPP_PATH"):
        yield from _existing(entry / _CUSTOM)
    for entry in _entries("ASCEND_OPP_PATH"):
        for vendor in _vendors(entry / "vendors" / "config.ini"):
            yield from _existing(entry / "vendors" / vendor / _CUSTOM)
    for entry in _entries("ASCEND_HOME_PATH"):
        yield from map(str, sorted((entry / "lib64").glob("libopapi_*.so")))
        yield from _existing(entry / "lib64" / "libopapi.so")
    yield "libopapi.so"  # found by the loader


def available() -> bool:
    """Whether CANN's runtime and an operator library can be opened."""
    return _open(tuple(os.environ.get(name, "") for name in _VARIABLES)) is not None


def has(name: str) -> bool:
    """Whether CANN has the operator."""
    symbols = _open(tuple(os.environ.get(name, "") for name in _VARIABLES))
    return symbols is not None and symbols.find(f"{name}GetWorkspaceSize") is not None


def launch(
    schema: Schema, values: Sequence[Any], *, stream: int | None = None, allocator: Allocator | None = None
) -> None:
    """Run an operator of CANN on NumPy arrays, which are copied to the device and back.

    Raises ``HostError`` if CANN is not installed or its runtime does not start, ``UnsupportedError``
    for an operator that it does not have, and what the two phases raise.
    """
    symbols = _open(tuple(os.environ.get(name, "") for name in _VARIABLES))
    if symbols is None:
        raise HostError(schema.name, "needs CANN, and libascendcl.so and libopapi.so cannot be opened")
    if symbols.find(f"{schema.name}GetWorkspaceSize") is None:
        searched = ", ".join(str(library._name) for library in symbols.libraries)  # noqa: SLF001 - its path
        raise UnsupportedError(schema.name, "is not an operator of CANN here", hint=f"searched: {searched}")
    _start(symbols)
    call(schema, values, symbols, DeviceMemory(symbols), stream=stream, allocator=allocator)


class DeviceMemory:
    """The device's memory: arrays are copied there, and those that were written are copied back."""

    def __init__(self, symbols: Symbols) -> None:
        """Start without allocations."""
        self.symbols = symbols
        self._allocated: list[int] = []

    def address(self, array: np.ndarray[Any, Any]) -> int:
        """Copy the array to the device, dense, and return its address there."""
        dense = np.ascontiguousarray(array)
        address = self.workspace(max(dense.nbytes, 1))
        self._copy(address, dense.ctypes.data, dense.nbytes, _TO_DEVICE)
        return address

    def workspace(self, size: int) -> int:
        """Return the address of ``size`` bytes on the device."""
        pointer = ctypes.c_void_p()
        self._check("aclrtMalloc", ctypes.byref(pointer), ctypes.c_size_t(size), ctypes.c_int(0))
        self._allocated.append(pointer.value or 0)
        return pointer.value or 0

    def finish(self, written: Sequence[Written], stream: int | None) -> None:
        """Wait for the stream, and copy the arrays that were written back to the host."""
        self._check("aclrtSynchronizeStream", ctypes.c_void_p(stream))
        for array, address in written:
            dense = np.empty(array.shape, array.dtype)
            self._copy(dense.ctypes.data, address, dense.nbytes, _TO_HOST)
            array[...] = dense

    def release(self) -> None:
        """Free everything that was allocated."""
        for address in self._allocated:
            self.symbols.get("aclrtFree")(ctypes.c_void_p(address))
        self._allocated.clear()

    def _copy(self, to: int, source: int, size: int, kind: int) -> None:
        count = ctypes.c_size_t(size)
        self._check(
            "aclrtMemcpy", ctypes.c_void_p(to), count, ctypes.c_void_p(source), count, ctypes.c_int(kind)
        )

    def _check(self, name: str, *arguments: Any) -> None:
        status = self.symbols.get(name)(*arguments)
        if status != 0:
            raise HostError("CANN", f"{name} returned {status}", hint=recent_error(self.symbols))


@lru_cache(maxsize=4)
def _open(environment: tuple[str, ...]) -> Symbols | None:
    """Return the functions of CANN, or None. ``environment`` is the key of the cache."""
    del environment
    opened = [library for name in operator_libraries() if (library := _library(name)) is not None]
    homes = [str(entry / "lib64" / name) for entry in _entries("ASCEND_HOME_PATH") for name in _RUNTIME]
    runtime = [library for name in (*homes, *_RUNTIME) if (library := _library(name)) is not None]
    symbols = Symbols([*opened, *runtime], "CANN")
    return symbols if opened and symbols.find("aclrtMalloc") is not None else None


def _library(name: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


@lru_cache(maxsize=4)
def _start(symbols: Symbols) -> None:
    """Start the runtime and select the first device, unless a framework has started it."""
    status = symbols.get("aclInit")(ctypes.c_char_p(None))
    if status not in (0, _REPEATED):
        raise HostError("CANN", f"aclInit returned {status}", hint=recent_error(symbols))
    if status == 0:
        status = symbols.get("aclrtSetDevice")(ctypes.c_int32(0))
        if status != 0:
            raise HostError("CANN", f"aclrtSetDevice returned {status}", hint=recent_error(symbols))


def _entries(variable: str) -> list[Path]:
    return [Path(entry) for entry in os.environ.get(variable, "").split(":") if entry]


def _existing(path: Path) -> list[str]:
    return [str(path)] if path.is_file() else []


def _vendors(path: Path) -> list[str]:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return []
    pairs = (line.partition("=") for line in lines)
    priority = next((value for key, _, value in pairs if key.strip() == "load_priority"), "")
    return [name.strip() for name in priority.split(",") if name.strip()]
