"""Find and open ``libtvm_ffi.so``, which libraries of tvm-ffi's functions need."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import LibraryError
from .elf import TVM_FFI
from .file_kind import subject_of
from .known_libraries import hint_about
from .open import open_library

if TYPE_CHECKING:
    import ctypes

_NAME = "libtvm_ffi.so"
_VERSION = (0, 1)  # major and minor; a change of the C interface gets another one


def mentions(path: str | Path) -> bool:
    """Whether the library at ``path`` exports functions of tvm-ffi, or needs its library."""
    import mmap

    with Path(path).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return any(data.find(mark) >= 0 for mark in (TVM_FFI.encode(), _NAME.encode()))


def open_runtime() -> int:
    """Return the handle of the installed package's ``libtvm_ffi.so``, or 0 where it is not installed.

    Libraries that are opened later find its functions. The package itself is not imported, because that
    imports PyTorch. Raises ``LibraryError`` for a version whose C interface is another one, and
    ``ArgumentTypeError`` for a place that POLYOP_LIBRARY_PATHS does not allow.
    """
    path = _installed()
    return 0 if path is None else _open(path)


def need_runtime(subject: str | Path) -> int:
    """Return the handle of ``libtvm_ffi.so``; raises ``LibraryError`` if ``subject`` lacks it."""
    handle = open_runtime()
    if not handle:
        rule = f"has a function of tvm-ffi, which needs {_NAME}, and that is not installed"
        raise LibraryError(subject_of(subject), rule, hint=hint_about(_NAME))
    return handle


def _installed() -> Path | None:
    import importlib.util

    spec = importlib.util.find_spec("tvm_ffi")
    folders = () if spec is None else spec.submodule_search_locations or ()
    paths = [Path(folder) / "lib" / _NAME for folder in folders]
    return next((path for path in paths if path.is_file()), None)


@functools.cache
def _open(path: Path) -> int:
    import ctypes

    handle = open_library(path)
    library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)  # a library need not be linked with it
    version = _version(library)
    if version[:2] != _VERSION:
        rule = f"must have version {'.'.join(map(str, _VERSION))} of tvm-ffi's C interface"
        hint = "install the version of apache-tvm-ffi that the library was built with, or update polyop"
        raise LibraryError(subject_of(path), rule, ".".join(map(str, version)), hint=hint)
    return handle


def _version(library: ctypes.CDLL) -> tuple[int, ...]:
    import ctypes

    numbers = (ctypes.c_uint32 * 3)()
    library.TVMFFIGetVersion(numbers)
    return tuple(numbers)
