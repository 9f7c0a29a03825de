"""Read the files of a wheel within limits; a damaged or hostile zip file is a ``LibraryError``."""

from __future__ import annotations

import hashlib
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO

from ..core.errors import LibraryError
from ..core.limits import shown
from ..core.locks import cached_property

_CHUNK = 1 << 20
_MAX_TEXT = 32 << 20
_MAX_MEMBERS = 100_000
_ROOM, _RATIO = 64 << 20, 100
"""All members together may unpack to _ROOM bytes plus _RATIO times the size of the wheel."""
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# the exceptions of the zip module for a damaged file; they have no base class in common
_DAMAGED = (
    OSError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, RuntimeError, ValueError,
    OverflowError, LookupError,
)  # fmt: skip


class Archive:
    """An open wheel. Only :meth:`copy` extracts a file."""

    def __init__(self, path: Path) -> None:
        """Open the file; raises ``LibraryError`` if it is damaged, or unpacks to far more than its size."""
        self.path = path
        if path.exists() and not path.is_file():  # to open a pipe waits for ever
            seen = "a directory" if path.is_dir() else "a device, pipe or socket"
            raise LibraryError(str(path), "must be a wheel", seen)
        with self._reading("its list of files"):
            self._zip = zipfile.ZipFile(path)
            packed = path.stat().st_size
        self._check_sizes(packed)
        self.digest = cache(self._digest)

    def close(self) -> None:
        """Close the file."""
        self._zip.close()

    def _check_sizes(self, packed: int) -> None:
        members = self._zip.infolist()
        limit = _ROOM + _RATIO * packed
        total = sum(member.file_size for member in members)
        if total > limit or len(members) > _MAX_MEMBERS:
            rule = f"unpacks to {total} bytes in {len(members)} files"
            allowed = f"a wheel of {packed} bytes may hold {limit} bytes in {_MAX_MEMBERS} files"
            raise LibraryError(str(self.path), f"{rule}, which is no honest wheel: {allowed}")
        for member in members:
            if member.compress_type not in _METHODS or member.flag_bits & 1:
                rule = (
                    f"the file {shown(member.filename)} is encrypted, or packed in a way that wheels are not"
                )
                raise LibraryError(str(self.path), rule, hint="pack it with deflate, as pip wheel does")

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        try:
            yield
        except LibraryError:
            raise
        except _DAMAGED as problem:
            rule = f"cannot be read as a wheel: {what}: {type(problem).__name__}: {problem}"
            raise LibraryError(str(self.path), rule, hint="build or download it again") from None

    @cached_property
    def names(self) -> dict[str, int]:
        """The files in their order, each with the number of times it occurs; no folders."""
        counts: dict[str, int] = {}
        for name in self._zip.namelist():
            if not name.endswith("/"):
                counts[name] = counts.get(name, 0) + 1
        return counts

    def _chunks(self, name: str) -> Iterator[bytes]:
        with self._reading(shown(name)), self._zip.open(name) as stream:
            yield from iter(lambda: stream.read(_CHUNK), b"")

    def read(self, name: str) -> bytes:
        """Return the content of a small file; raises ``LibraryError`` if it is damaged or too large."""
        data = bytearray()
        for chunk in self._chunks(name):
            data += chunk
            if len(data) > _MAX_TEXT:
                raise LibraryError(str(self.path), f"{shown(name)} has more than {_MAX_TEXT} bytes")
        return bytes(data)

    def text(self, name: str) -> str:
        """Return the content of a small text; raises ``LibraryError`` as :meth:`read` does."""
        with self._reading(shown(name)):
            return self.read(name).decode()

    def _digest(self, name: str) -> bytes:
        """Return the SHA-256 of a file."""
        digest = hashlib.sha256()
        for chunk in self._chunks(name):
            digest.update(chunk)
        return digest.digest()

    def copy(self, name: str, stream: IO[bytes]) -> None:
        """Write the content of a file to ``stream``."""
        for chunk in self._chunks(name):
            stream.write(chunk)
