"""Read the cache's JSON records, which may be damaged or hostile.

Whatever is wrong with a record raises ``ValueError``; callers then treat it as damaged and rebuild it.
"""

from __future__ import annotations

import json
import os
from typing import Any

from ..binary.verified import open_plain

_MAX_BYTES = 64 << 20
"""A record that lists all of PyTorch's headers has a hundredth of this size."""
_INT64_LIMIT = 2**63


def read(path: str) -> tuple[Any, os.stat_result]:
    """Return the JSON value in a file, and the file's status.

    Raises ``OSError`` if there is no such file, ``ValueError`` if it is no regular file or its text is wrong.
    """
    data, status = read_bytes(path)
    return parse(data), status


def parse(data: bytes) -> Any:
    """Return the JSON value of a file's bytes; raises ``ValueError`` if they are none."""
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def read_bytes(path: str) -> tuple[bytes, os.stat_result]:
    """Return a file's bytes and its status. Raises what :func:`read` raises, whatever the bytes are."""
    file = open_plain(path)
    if file is None:
        os.stat(path)
        raise ValueError("not a plain file")
    with open(file, "rb") as stream:
        status = os.fstat(file)
        if status.st_size > _MAX_BYTES:
            raise ValueError(f"{status.st_size} bytes, which is too long for a record")
        return stream.read(), status


def text(value: Any) -> str:
    """Return a string that can be a path; raises ``ValueError`` for anything else."""
    if not isinstance(value, str) or "\0" in value:
        raise ValueError(f"{_shown(value)} is no text")
    os.fsencode(value)  # raises ValueError for a string that no path can have
    return value


def hexadecimal(value: Any, digits: int) -> str:
    """Return a string of exactly ``digits`` hexadecimal digits; raises ``ValueError`` for anything else."""
    if not isinstance(value, str) or len(value) != digits or set(value) - set("0123456789abcdef"):
        raise ValueError(f"{_shown(value)} is no digest of {digits} digits")
    return value


def base_name(value: Any) -> str:
    """Return a file name without a folder; raises ``ValueError`` for a path, and for anything else.

    >>> base_name("k.so")
    'k.so'
    >>> base_name("../k.so")
    Traceback (most recent call last):
    ValueError: '../k.so' is no plain file name
    """
    name = text(value)
    if "/" in name or name in ("", ".", ".."):
        raise ValueError(f"{_shown(name)} is no plain file name")
    return name


def int64(value: Any) -> int:
    """Return an integer of 64 bits; raises ``ValueError`` for anything else."""
    if type(value) is not int or not -_INT64_LIMIT <= value < _INT64_LIMIT:
        raise ValueError(f"{_shown(value)} is no whole number of 64 bits")
    return value


def timestamp(value: Any) -> float:
    """Return a time in seconds; raises ``ValueError`` for anything else."""
    if type(value) not in (int, float) or not abs(value) < _INT64_LIMIT:
        raise ValueError(f"{_shown(value)} is no time")
    return float(value)


def rows(value: Any) -> list[Any]:
    """Return a list; raises ``ValueError`` for anything else."""
    if not isinstance(value, list):
        raise ValueError(f"{_shown(value)} is no list")  # noqa: TRY004 - damage is one kind of error
    return value


def field(value: Any, name: str) -> Any:
    """Return the value of a key; raises ``ValueError`` if ``value`` is no dictionary or lacks the key."""
    if not isinstance(value, dict) or name not in value:
        raise ValueError(f"there is no {name}")
    return value[name]


def _shown(value: Any) -> str:
    return (
        repr(value)[:40]
        if isinstance(value, (str, int, float, bool, type(None)))
        else f"a {type(value).__name__}"
    )
