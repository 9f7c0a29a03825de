"""Limits on values that come from files and texts, and the short text of a value for an error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .errors import ArgumentTypeError, ArgumentValueError

MAX_DEPTH = 64
"""How deeply lists and mappings may be nested."""
MAX_ITEMS = 1_000_000
"""How many items the lists and mappings of one value may have together."""
MAX_BLOCK_BYTES = 16 << 20
"""How much memory of its own a thread of a loop kernel gets to run iterations in blocks."""
_SHOWN = 200
"""Characters of a value in an error."""


def shown(value: object) -> str:
    """Return ``repr(value)``, shortened if it is long or deeply nested.

    >>> shown([1, "a"]), len(shown("x" * 1000))
    ("[1, 'a']", 200)
    """
    import reprlib

    short = reprlib.Repr()
    short.maxlevel, short.maxother, short.maxlong = 3, _SHOWN, _SHOWN
    short.maxstring = _SHOWN
    try:
        text = short.repr(value)
    except ValueError:  # an integer with more digits than Python converts to text
        text = f"a value of type {type(value).__name__} with too many digits"
    return text if len(text) <= 2 * _SHOWN else f"{text[: 2 * _SHOWN]}..."


def oversize(value: object) -> str | None:
    """Return why a value of lists, tuples and mappings is beyond the limits, or None.

    A list that contains itself is too deep. A value that occurs several times is counted each time.

    >>> oversize([1, [2]])
    >>> loop = []
    >>> loop.append(loop)
    >>> oversize(loop)
    'it is nested more than 64 levels deep'
    """
    level, count = [value], 0
    for _ in range(MAX_DEPTH + 1):
        next_level: list[object] = []
        for container in level:
            for item in _items(container):
                next_level.append(item)
                count += 1
                if count > MAX_ITEMS:
                    return f"it has more than {MAX_ITEMS} items"
        if not next_level:
            return None
        level = next_level
    return f"it is nested more than {MAX_DEPTH} levels deep"


def _items(value: object) -> Iterator[object]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield key
            yield item
    elif isinstance(value, (list, tuple)):
        yield from value


def is_text(value: str) -> bool:
    r"""Return whether UTF-8 and C can represent a string: it has no lone surrogate, and no NUL.

    >>> is_text("a"), is_text("a\0"), is_text("\ud800")
    (True, False, False)
    """
    if "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_path(path: Any, subject: str) -> str:
    """Return a path as a string.

    Raises ``ArgumentTypeError`` for a value that is no path, ``ArgumentValueError`` for a path that no file
    can have, such as one with a NUL.
    """
    import os

    try:
        text = os.fspath(path)
    except TypeError:
        seen = f"{shown(path)} ({type(path).__name__})"
        raise ArgumentTypeError(subject, "the path must be a text or a pathlib.Path", seen) from None
    if not isinstance(text, str):
        text = os.fsdecode(text)
    try:
        usable = b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        usable = False
    if not usable:
        rule = "the path must be one that a file can have: without NUL and halves of surrogate pairs"
        raise ArgumentValueError(subject, rule, shown(text))
    return text


def read_json(text: str | bytes) -> Any:
    """Return the value of a JSON text that may be wrong or malicious.

    Raises ``ValueError`` with the reason if it is no JSON, if the value is beyond the limits of
    :func:`oversize`, and if a number is not finite.

    >>> read_json('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    """
    import json

    def finite(number: str) -> float:
        converted = float(number)
        if converted - converted != 0:  # infinity and NaN
            raise ValueError(f"the number {shown(number)} is not finite")
        return converted

    def whole(digits: str) -> int:
        if len(digits) > _SHOWN:
            raise ValueError(f"the number {shown(digits)} has more than {_SHOWN} digits")
        return int(digits)

    try:
        value = json.loads(text, parse_float=finite, parse_int=whole, parse_constant=finite)
    except RecursionError:
        raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep") from None
    problem = oversize(value)
    if problem is not None:
        raise ValueError(problem)
    return value


def read_text(path: Any, max_bytes: int) -> str:
    """Return the text of a file, which must be UTF-8 of at most ``max_bytes`` bytes.

    Raises ``OSError`` if the file cannot be read, and ``ValueError`` with the reason for another content or
    an invalid path.
    """
    from pathlib import Path

    with Path(path).open("rb") as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise ValueError(f"it has more than {max_bytes} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as problem:
        raise ValueError(f"byte {problem.start} is no UTF-8") from None
