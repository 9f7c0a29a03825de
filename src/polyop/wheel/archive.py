"""The members of a wheel, read with limits: a damaged or hostile zip file gives ``LibraryError``."""

from __future__ import annotations

import hashlib
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import IO

from ..core.errors import LibraryError
from ..core.limits import shown

_CHUNK = 1 << 20
_LONGEST_TEXT = 32 << 20
_MOST_MEMBERS = 100_000
_ROOM, _RATIO = 64 << 20, 100
"""Members may unpack to this many bytes, and to this many times the size of the file beyond them."""
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# what the zip module raises for bytes that are no zip file; it has no class for them
_DAMAGED = (
    OSError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, RuntimeError, ValueError,
    OverflowError, LookupError,
)  # fmt: skip


class Archive:
    """An opened wheel. Nothing is extracted but what :meth:`copy` is asked for."""

    def __init__(self, path: Path) -> None:
        """Open the file; raises ``LibraryError`` for one that is damaged or unpacks to far too much."""
        self.path = path
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
        most = _ROOM + _RATIO * packed
        total = sum(member.file_size for member in members)
        if total > most or len(members) > _MOST_MEMBERS:
            rule = f"unpacks to {total} bytes in {len(members)} files"
            limit = f"a wheel of {packed} bytes may hold {most} bytes in {_MOST_MEMBERS} files"
            raise LibraryError(str(self.path), f"{rule}, which is no honest wheel: {limit}")
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
        """The files with how often each is there, in their order; folders are left out."""
        counted: dict[str, int] = {}
        for name in self._zip.namelist():
            if not name.endswith("/"):
                counted[name] = counted.get(name, 0) + 1
        return counted

    def _chunks(self, name: str) -> Iterator[bytes]:
        with self._reading(shown(name)), self._zip.open(name) as stream:
            yield from iter(lambda: stream.read(_CHUNK), b"")

    def read(self, name: str) -> bytes:
        """Return the content of a small file; raises ``LibraryError`` where it is damaged or large."""
        data = bytearray()
        for chunk in self._chunks(name):
            data += chunk
            if len(data) > _LONGEST_TEXT:
                raise LibraryError(str(self.path), f"{shown(name)} has more than {_LONGEST_TEXT} bytes")
        return bytes(data)

    def text(self, name: str) -> str:
        """Return the content of a small text; raises ``LibraryError`` as :meth:`read` does."""
        with self._reading(shown(name)):
            return self.read(name).decode()

    def _digest(self, name: str) -> bytes:
        """Return the SHA-256 of a file."""
        running = hashlib.sha256()
        for chunk in self._chunks(name):
            running.update(chunk)
        return running.digest()

    def copy(self, name: str, stream: IO[bytes]) -> None:
        """Write the content of a file to ``stream``."""
        for chunk in self._chunks(name):
            stream.write(chunk)
