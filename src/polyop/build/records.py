"""Records on disk, read as what they may be: damaged, or written by nobody who means well.

Whatever is wrong with a record is one kind of error, so that it counts as damaged and is made again.
"""

from __future__ import annotations

import json
import os
from typing import Any

from ..binary.verified import open_plain

_LARGEST = 64 << 20
"""Bytes: no record comes near this; PyTorch's headers take a hundredth."""
_LAST = 2**63


def read(path: str) -> tuple[Any, os.stat_result]:
    """Return the JSON in a file, and what the file is.

    Raises ``OSError`` where there is no plain file, ``ValueError`` for all that is wrong with its text.
    """
    file = open_plain(path)
    if file is None:
        os.stat(path)
        raise ValueError("not a plain file")
    with open(file, "rb") as stream:
        seen = os.fstat(file)
        if seen.st_size > _LARGEST:
            raise ValueError(f"{seen.st_size} bytes, which is too long for a record")
        try:
            return json.loads(stream.read()), seen
        except RecursionError:
            raise ValueError("nested too deeply") from None


def text(value: Any) -> str:
    """Return a text that can be a path; raises ``ValueError`` for anything else."""
    if not isinstance(value, str) or "\0" in value:
        raise ValueError(f"{_shown(value)} is no text")
    os.fsencode(value)  # what is no path is a ValueError here, and not where the path is used
    return value


def hexadecimal(value: Any, digits: int) -> str:
    """Return a digest of so many hexadecimal digits; raises ``ValueError`` for anything else."""
    if not isinstance(value, str) or len(value) != digits or set(value) - set("0123456789abcdef"):
        raise ValueError(f"{_shown(value)} is no digest of {digits} digits")
    return value


def base_name(value: Any) -> str:
    """Return the name of a file in its own folder; raises ``ValueError`` for a path, and for anything else.

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


def whole(value: Any) -> int:
    """Return a whole number as files have it; raises ``ValueError`` for anything else."""
    if type(value) is not int or not -_LAST <= value < _LAST:
        raise ValueError(f"{_shown(value)} is no whole number of 64 bits")
    return value


def moment(value: Any) -> float:
    """Return a time in seconds; raises ``ValueError`` for anything else."""
    if type(value) not in (int, float) or not abs(value) < _LAST:
        raise ValueError(f"{_shown(value)} is no time")
    return float(value)


def rows(value: Any) -> list[Any]:
    """Return a list; raises ``ValueError`` for anything else."""
    if not isinstance(value, list):
        raise ValueError(f"{_shown(value)} is no list")  # noqa: TRY004 - damage is one kind of error
    return value


def field(value: Any, name: str) -> Any:
    """Return what a table has under a name; raises ``ValueError`` where it is no table, or has nothing."""
    if not isinstance(value, dict) or name not in value:
        raise ValueError(f"there is no {name}")
    return value[name]


def _shown(value: Any) -> str:
    return (
        repr(value)[:40]
        if isinstance(value, (str, int, float, bool, type(None)))
        else f"a {type(value).__name__}"
    )
