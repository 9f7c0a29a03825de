"""Open shared libraries as code of this process: each once, and only if the allowlist has it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .. import _core
from ..core import locks
from ..core.errors import LibraryError
from . import verified
from .allowed import check_allowed

if TYPE_CHECKING:
    from pathlib import Path

_open: dict[tuple[str, tuple[int, ...]], int] = {}
"""(Resolved path, stamp of the file) -> handle. A library that was built again has another stamp."""
_lock = locks.shared("opening of libraries", locks.Level.OPEN)


def open_library(path: str | Path) -> int:
    """Return the handle of the library at ``path``, which is opened once per process.

    A library of the build cache or of a package's index is loaded through the very file that was verified.
    Raises ``LibraryError`` that says what is wrong with the file, and ``ArgumentTypeError`` if it lies
    outside the folders that POLYOP_LIBRARY_PATHS allows.
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
        if not is_whole(resolved):  # the loader would map pages beyond the end of the file, and crash
            raise _diagnosed(path, "the file is shorter than its own headers say")
        was_rebuilt = any(path == resolved for path, _ in _open)
        try:
            _open[identity] = _open_copy(resolved) if was_rebuilt else _core.open_library(resolved)
        except RuntimeError as problem:
            raise _diagnosed(path, str(problem)) from None
        return _open[identity]


def opened(path: str | Path) -> int:
    """Return the handle of a library that this process opened, the latest one, or 0 if it opened none."""
    resolved = os.path.realpath(path)
    with _lock:
        return next((handle for (name, _), handle in reversed(_open.items()) if name == resolved), 0)


def _diagnosed(path: str | Path, problem: str) -> LibraryError:
    from . import diagnose  # imported only when a library cannot be opened: it reads ELF files

    return diagnose.diagnose(str(path), problem)


def _stamp(path: str | int) -> tuple[int, ...]:
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def _open_copy(path: str) -> int:
    # the loader returns the old library for a path that it knows, so a rebuilt file needs another path
    import shutil
    import tempfile

    with tempfile.TemporaryDirectory(prefix="polyop-") as folder:
        copy = os.path.join(folder, os.path.basename(path))
        shutil.copyfile(path, copy)
        return _core.open_library(copy)


def is_whole(path: str) -> bool:
    """Whether a file has all bytes that its program headers tell the loader to map.

    A file that is no ELF file, or that cannot be read, counts as whole: the loader reports it.
    """
    from .elf_tables import Damaged, Elf

    try:
        with open(path, "rb") as file:
            return file.read(4) != b"\x7fELF" or Elf(file).is_whole
    except Damaged:
        return False
    except OSError:
        return True
