"""SHA-256 of texts and files, quick to import.

Python's own implementation is used, because hashlib loads all of OpenSSL, which takes longer than hashing a
small file. Large files are hashed by OpenSSL, which is faster.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Iterable
from typing import Any

_CHUNK = 1 << 20
"""Bytes read at a time. A file of this size or more is worth loading OpenSSL for."""


def _openssl() -> Any:
    import hashlib

    return hashlib.sha256


try:
    _sha256 = importlib.import_module("_sha2" if sys.version_info >= (3, 12) else "_sha256").sha256
except ImportError:  # a Python that was built without its own hashes
    _sha256 = _openssl()


def text_digest(text: str | bytes) -> str:
    """Return the SHA-256 of a string's UTF-8, or of bytes, in hexadecimal.

    >>> text_digest("")[:16]
    'e3b0c44298fc1c14'
    """
    hexadecimal: str = _sha256(text.encode() if isinstance(text, str) else text).hexdigest()
    return hexadecimal


def digest_of(paths: Iterable[str]) -> str:
    """Return one SHA-256 for several files in this order: that of their digests. Raises ``OSError``."""
    return text_digest(" ".join(map(digest, paths)))


def digest(path: str | os.PathLike[str] | int) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal; of an open file, from its current offset.

    Raises ``OSError``.
    """
    with open(path, "rb", closefd=not isinstance(path, int)) as file:
        data = file.read(_CHUNK)
        sha256 = (_openssl() if len(data) == _CHUNK or "hashlib" in sys.modules else _sha256)(data)
        while data:
            data = file.read(_CHUNK)
            sha256.update(data)
    hexadecimal: str = sha256.hexdigest()
    return hexadecimal


def known_digest(path: str | os.PathLike[str]) -> str:
    """Return :func:`digest` of a file; a process hashes it once as long as its size and time stay the same.

    It tells operators apart; whether a file may be loaded is decided from its bytes. Raises ``OSError``.
    """
    status = os.stat(path)  # noqa: PTH116 - pathlib is slow to import
    return _known(os.fspath(path), status.st_ino, status.st_size, status.st_mtime_ns)


@functools.lru_cache(maxsize=1024)
def _known(path: str, inode: int, size: int, modified: int) -> str:
    del inode, size, modified  # part of the key: a changed file is hashed again
    return digest(path)
