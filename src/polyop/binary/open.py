"""Opening a shared library as code of this process: once each, and only what may be opened."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from .. import _core
from ..core.errors import LibraryError
from . import verified
from .allowed import check_allowed

if TYPE_CHECKING:
    from pathlib import Path

_open: dict[tuple[str, tuple[int, ...]], int] = {}
_lock = threading.Lock()


def open_library(path: str | Path) -> int:
    """Return the handle of the library at ``path``, opened once per process.

    A library of the build cache, and one that a package shipped, is loaded through the file that was
    verified. Raises ``LibraryError`` that says what is wrong with the file, or ``ArgumentTypeError``
    when it lies outside the folders that POLYOP_LIBRARY_PATHS allows.
    """
    resolved = check_allowed(path)
    with _lock:
        identity = (resolved, _stamp(resolved))
        if identity in _open:
            verified.drop(resolved)
            return _open[identity]
        file = verified.take(resolved)
        if file is not None:
            try:
                identity = (resolved, _stamp(file))
                _open[identity] = _core.open_library(resolved, file)
            except RuntimeError as problem:
                raise _diagnosed(path, str(problem)) from None
            finally:
                os.close(file)
            return _open[identity]
        if not is_whole(resolved):  # the loader would map what is not there, and crash
            raise _diagnosed(path, "the file is shorter than its own headers say")
        again = any(opened == resolved for opened, _ in _open)
        try:
            _open[identity] = _open_copy(resolved) if again else _core.open_library(resolved)
        except RuntimeError as problem:
            raise _diagnosed(path, str(problem)) from None
        return _open[identity]


def opened(path: str | Path) -> int:
    """Return the handle of a library that this process has open, as it was opened last; 0 for none."""
    resolved = os.path.realpath(path)
    with _lock:
        return next((handle for (name, _), handle in reversed(_open.items()) if name == resolved), 0)


def _diagnosed(path: str | Path, problem: str) -> LibraryError:
    from . import diagnose  # it reads ELF files: only when one cannot be opened

    return diagnose.diagnose(str(path), problem)


def _stamp(path: str | int) -> tuple[int, ...]:
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def _open_copy(path: str) -> int:
    # the loader knows libraries by their path: a file that was built again needs another one
    import shutil
    import tempfile

    with tempfile.TemporaryDirectory(prefix="polyop-") as folder:
        copy = os.path.join(folder, os.path.basename(path))
        shutil.copyfile(path, copy)
        return _core.open_library(copy)


def is_whole(path: str) -> bool:
    """Whether an ELF file holds all bytes that its program headers tell the loader to map."""
    from .elf_tables import Damaged, Elf

    try:
        with open(path, "rb") as file:
            return file.read(4) != b"\x7fELF" or Elf(file).is_whole
    except Damaged:
        return False
    except OSError:
        return True  # whatever it is, the loader says so
