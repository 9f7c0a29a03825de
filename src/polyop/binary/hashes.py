"""SHA-256 by Python's own code: hashlib first loads all of OpenSSL, longer than a small file takes."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable
from typing import Any

_LARGE = 1 << 20
"""Bytes from which OpenSSL's speed is worth loading it."""


def _openssl() -> Any:
    import hashlib

    return hashlib.sha256


try:
    _sha256 = importlib.import_module("_sha2" if sys.version_info >= (3, 12) else "_sha256").sha256
except ImportError:  # a Python whose hashes are OpenSSL's alone
    _sha256 = _openssl()


def text_digest(text: str | bytes) -> str:
    """Return the SHA-256 of a text (its UTF-8) or of bytes, in hexadecimal.

    >>> text_digest("")[:16]
    'e3b0c44298fc1c14'
    """
    found: str = _sha256(text.encode() if isinstance(text, str) else text).hexdigest()
    return found


def digest_of(paths: Iterable[str]) -> str:
    """Return the SHA-256 of several files' digests, in their order. Raises ``OSError``."""
    return text_digest(" ".join(map(digest, paths)))


def digest(path: str | os.PathLike[str] | int) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal; of an open file, from where it stands.

    Raises ``OSError``.
    """
    with open(path, "rb", closefd=not isinstance(path, int)) as file:
        data = file.read(_LARGE)
        found = (_openssl() if len(data) == _LARGE or "hashlib" in sys.modules else _sha256)(data)
        while data:
            data = file.read(_LARGE)
            found.update(data)
    text: str = found.hexdigest()
    return text
