"""Bounds on values that come from files and texts, and the short text of a value for an error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .errors import ArgumentTypeError, ArgumentValueError

DEEPEST = 64
"""How many lists and mappings may stand inside each other."""
MOST_ITEMS = 1_000_000
"""How many items the lists and mappings of one value may have together."""
_SHOWN = 200


def shown(value: object) -> str:
    """Return ``repr(value)``, shortened where it is long or deep; it never raises.

    >>> shown([1, "a"]), len(shown("x" * 1000))
    ("[1, 'a']", 200)
    """
    import reprlib

    short = reprlib.Repr()
    short.maxlevel, short.maxother, short.maxlong = 3, _SHOWN, _SHOWN
    short.maxstring = _SHOWN
    try:
        text = short.repr(value)
    except ValueError:  # an integer with more digits than Python writes
        text = f"a value of type {type(value).__name__} with too many digits"
    return text if len(text) <= 2 * _SHOWN else f"{text[: 2 * _SHOWN]}..."


def oversize(value: object) -> str | None:
    """Return why a value of lists, tuples and mappings is beyond the bounds, or None.

    A list that holds itself has no end, so it is too deep. A value that stands in several places
    counts once for each of them.

    >>> oversize([1, [2]])
    >>> loop = []
    >>> loop.append(loop)
    >>> oversize(loop)
    'it is nested more than 64 levels deep'
    """
    level, count = [value], 0
    for _ in range(DEEPEST + 1):
        inside: list[object] = []
        for each in level:
            for item in _items(each):
                inside.append(item)
                count += 1
                if count > MOST_ITEMS:
                    return f"it has more than {MOST_ITEMS} items"
        if not inside:
            return None
        level = inside
    return f"it is nested more than {DEEPEST} levels deep"


def _items(value: object) -> Iterator[object]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield key
            yield item
    elif isinstance(value, (list, tuple)):
        yield from value


def is_text(value: str) -> bool:
    r"""Return whether UTF-8 and C can hold a text: it has no half of a surrogate pair, and no NUL.

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
    """Return a path as text, when a file can have it: the system's names end at a NUL.

    Raises ``ArgumentTypeError`` for what is no path, ``ArgumentValueError`` for one that no file can have.
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
    """Return the value of a JSON text that comes from elsewhere, such as a file.

    Raises ``ValueError`` with the reason for what is no JSON, for a value beyond the bounds of
    :func:`oversize`, and for a number that is not finite.

    >>> read_json('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    """
    import json

    def finite(number: str) -> float:
        found = float(number)
        if found - found != 0:
            raise ValueError(f"the number {shown(number)} is not finite")
        return found

    def whole(digits: str) -> int:
        if len(digits) > _SHOWN:
            raise ValueError(f"the number {shown(digits)} has more than {_SHOWN} digits")
        return int(digits)

    try:
        value = json.loads(text, parse_float=finite, parse_int=whole, parse_constant=finite)
    except RecursionError:
        raise ValueError(f"it is nested more than {DEEPEST} levels deep") from None
    problem = oversize(value)
    if problem is not None:
        raise ValueError(problem)
    return value


def read_text(path: Any, most: int) -> str:
    """Return the text of a file, which must be UTF-8 of at most ``most`` bytes.

    Raises ``OSError`` for a file that cannot be read, and ``ValueError`` with the reason for a path
    or a content that is not allowed.
    """
    from pathlib import Path

    with Path(path).open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"it has more than {most} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as problem:
        raise ValueError(f"byte {problem.start} is no UTF-8") from None
