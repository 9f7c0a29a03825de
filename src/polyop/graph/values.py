"""Defaults of attributes: from C++ to Python values, and back."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from .cursor import Cursor
from .prototype import DTypeName
from .tables import ATTRIBUTE_TYPES, CONSTANTS, DTYPE_NUMBERS

FLOAT_MAX = float(CONSTANTS["FLT_MAX"])  # type: ignore[arg-type]
_NAMES = {number: name for name, number in DTYPE_NUMBERS.items()}
_WHAT = {
    "int": "an integer", "float": "a number", "bool": "true or false", "str": "a string in quotes",
    "dtype": "a ge::DataType",
}  # fmt: skip


def value(cursor: Cursor, kind: str, name: str) -> Any:
    """Return the default that stands at the cursor, for an attribute of type ``kind``.

    Lists become tuples, dtypes ``DTypeName``; of a type that only C++ has a value of, the text.
    Raises ``SchemaError`` for what the type cannot hold.
    """
    row = ATTRIBUTE_TYPES[kind]
    if row.item == "opaque":
        return _source(cursor, name)
    subject = f"of attribute {name} ({kind})"
    return _list(cursor, row.item, row.lists, subject) if row.lists else _scalar(cursor, row.item, subject)


def _source(cursor: Cursor, name: str) -> str:
    """Return the tokens up to the ``)`` of the macro as one text."""
    parts, depth = [""], 0
    while depth or not cursor.ahead(")"):
        token = cursor.token
        if token.kind == "end":
            cursor.expected(f"')' after the default of attribute {name}")
        if token.kind == "mark":
            depth += (token.text in "({[") - (token.text in ")}]")
        part = quote(token.text) if token.kind == "string" else token.text
        glue = bool(re.search(r"\w\Z", parts[-1][-1:])) and bool(re.match(r"\w", part))
        parts.append((" " if glue or parts[-1].endswith(",") else "") + part)
        cursor.next()
    if len(parts) == 1:
        cursor.expected(f"the default of attribute {name}")
    return "".join(parts)


def _list(cursor: Cursor, item: str, depth: int, subject: str) -> tuple[Any, ...]:
    if depth == 0:
        return (_scalar(cursor, item, subject),)
    constant = _constant(cursor)
    if isinstance(constant, tuple) and depth == 1 and item == "int":
        return constant
    wrapped = _constructor(cursor)
    if wrapped and cursor.take(")"):
        return ()
    if not cursor.take("{"):
        cursor.expected(f"'{{' for the default {subject}")
    found: list[Any] = []
    for _ in cursor.until("}"):
        found += [_list(cursor, item, depth - 1, subject)] if depth > 1 else _list(cursor, item, 0, subject)
    if wrapped:
        cursor.need(")", f"after the default {subject}")
    return tuple(found)


def _constructor(cursor: Cursor) -> bool:
    """Step over ``ListInt(`` or ``std::vector<int>(``; whether there is a ``(`` to close. ``{`` stays."""
    if cursor.token.kind == "name":
        cursor.next()
        while cursor.take("::"):
            cursor.name("a name after ::")
        if cursor.take("<"):
            while not cursor.take(">"):
                if cursor.token.kind == "end" or cursor.ahead(")") or cursor.ahead(";"):
                    cursor.expected("'>'")
                cursor.next()
            while cursor.take(">"):
                pass
    return cursor.take("(")


def _scalar(cursor: Cursor, item: str, subject: str) -> Any:
    if cursor.ahead("(") or (cursor.token.kind == "name" and _calls(cursor)):
        if not _constructor(cursor):
            cursor.expected(f"{_WHAT[item]} for the default {subject}")
        found = _scalar(cursor, item, subject)
        cursor.need(")", f"after the default {subject}")
        return found
    line = cursor.line
    found = _word(cursor, item, subject)
    fits = _FITS[item](found)
    if fits is None:
        cursor.fail(f"expected {_WHAT[item]} for the default {subject}", repr(found), line=line)
    if isinstance(fits, int) and not -(2**63) <= fits < 2**63:
        cursor.fail(f"the default {subject} must fit in 64 bits", found, line=line)
    if isinstance(fits, float) and math.isfinite(fits) and abs(fits) > FLOAT_MAX:
        cursor.fail(f"the default {subject} must fit in a float of 32 bits", found, line=line)
    return fits


def _calls(cursor: Cursor) -> bool:
    """Whether a name stands here that begins a conversion: ``Int(1)``, ``std::string("a")``."""
    return cursor.ahead("(", 1) or cursor.ahead("<", 1) or (cursor.ahead("std") and cursor.ahead("::", 1))


def _word(cursor: Cursor, item: str, subject: str) -> Any:
    """Return the literal or constant here, as whatever type it is of."""
    if cursor.token.kind == "string":
        texts = []
        while cursor.token.kind == "string":  # C++ joins neighbours
            texts.append(cursor.next().text)
        return "".join(texts)
    sign = 1
    while cursor.ahead("-") or cursor.ahead("+"):
        sign = -sign if cursor.next().text == "-" else sign
    if cursor.token.kind == "number" or cursor.ahead("("):
        return sign * (_behind_sign if cursor.ahead("(") else _number)(cursor, subject)
    constant = _constant(cursor)
    if constant is not None and not isinstance(constant, tuple):
        return constant * sign
    for text, truth in (("true", True), ("false", False)):
        if sign == 1 and cursor.take(text):
            return truth
    cursor.qualifiers("ge", "DataType", "Type")
    if cursor.token.text.startswith("DT_") and sign == 1:
        return DTypeName(cursor.dtype())
    return cursor.expected(f"{_WHAT[item]} for the default {subject}")


def _behind_sign(cursor: Cursor, subject: str) -> int | float:
    """Return the number in brackets here; those without a sign in front are no matter of a word."""
    cursor.need("(", "")
    line, found = cursor.line, _word(cursor, "float", subject)
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        cursor.fail(f"expected a number behind the sign of the default {subject}", repr(found), line=line)
    cursor.need(")", f"after the default {subject}")
    return found


def _constant(cursor: Cursor) -> Any:
    at = cursor.at
    cursor.qualifiers("ge")
    if cursor.token.kind == "name" and cursor.token.text in CONSTANTS:
        return CONSTANTS[cursor.next().text]
    cursor.at = at
    return None


_INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9][0-9]*)[uUlL]{0,3}")
_FLOAT = re.compile(r"((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)[fFlL]?")
_HEX_FLOAT = re.compile(r"(0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][-+]?[0-9]+)[fFlL]?")
_LONGEST = 400
"""Characters of a number; no type that an attribute has needs more."""


def _number(cursor: Cursor, subject: str) -> int | float:
    text = cursor.token.text.replace("'", "")
    if len(text) > _LONGEST:
        cursor.fail(f"the default {subject} must be a number of at most {_LONGEST} characters", text)
    integer, hexadecimal, decimal = (form.fullmatch(text) for form in (_INTEGER, _HEX_FLOAT, _FLOAT))
    if integer is None and hexadecimal is None and decimal is None:
        cursor.expected(f"a number for the default {subject}")
    cursor.next()
    found: int | float
    if integer:
        digits = integer[1]
        octal = len(digits) > 1 and digits[1].isdigit() and digits[0] == "0"
        found = int(digits, 8 if octal else 0)
    elif hexadecimal:
        try:
            found = float.fromhex(hexadecimal[1])
        except OverflowError:
            found = math.inf
    else:
        assert decimal is not None
        found = float(decimal[1])
    if abs(found) >= 2**128:  # beyond 64 bits and beyond a float
        cursor.fail(f"the default {subject} must fit in a float of 32 bits", text)
    return found


def _whole(found: Any) -> int | None:
    if isinstance(found, float):
        return int(found) if found.is_integer() else None
    return int(found) if isinstance(found, int) else None


def _fit_dtype(found: Any) -> DTypeName | None:
    if isinstance(found, int) and not isinstance(found, bool) and found in _NAMES:
        return DTypeName(_NAMES[found])
    return found if isinstance(found, DTypeName) else None


_FITS: dict[str, Callable[[Any], Any]] = {  # the value as C++ converts it where nothing is lost, else None
    "str": lambda found: None if isinstance(found, DTypeName) or not isinstance(found, str) else found,
    "dtype": _fit_dtype,
    "int": lambda found: found if isinstance(found, DTypeName) else _whole(found),
    "float": lambda found: float(found) if isinstance(found, (int, float)) else None,
    "bool": lambda found: bool(found) if _whole(found) in (0, 1) else None,
}


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def quote(text: str) -> str:
    r"""Return the C++ literal of a string.

    >>> print(quote('say "no"\n'))
    "say \"no\"\n"
    """
    out = ""
    for character in text:
        plain = character.isprintable() or ord(character) > 0x9F
        out += _ESCAPES.get(character) or (
            character if plain and character not in "\x85\u2028\u2029" else _octal(character)
        )
    return f'"{out}"'


def _octal(character: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in character.encode())


def literal(item: str, found: Any) -> str:
    """Return the C++ text of a default whose items are of this kind; lists in braces."""
    if isinstance(found, tuple):
        return f"{{{', '.join(literal(item, each) for each in found)}}}"
    if item == "str":
        return quote(found)
    if isinstance(found, bool):
        return str(found).lower()
    if isinstance(found, float) and not math.isfinite(found):
        return "NAN" if math.isnan(found) else "-INFINITY" if found < 0 else "INFINITY"
    return repr(found) if isinstance(found, float) else str(found)


__all__ = ["literal", "quote", "value"]
