"""Convert the defaults of attributes from C++ to Python values, and back."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from .cursor import Cursor
from .prototype import DTypeName
from .vocabulary import ATTRIBUTE_TYPES, CONSTANTS, DTYPE_NUMBERS

FLOAT_MAX = float(CONSTANTS["FLT_MAX"])  # type: ignore[arg-type]
_NAMES = {number: name for name, number in DTYPE_NUMBERS.items()}
_EXPECTED = {
    "int": "an integer", "float": "a number", "bool": "true or false", "str": "a string in quotes",
    "dtype": "a ge::DataType",
}  # fmt: skip


def value(cursor: Cursor, kind: str, name: str) -> Any:
    """Read the default at the cursor, for an attribute of type ``kind``.

    Lists become tuples, dtypes become ``DTypeName``. For a type with values in C++ only, the source
    text is returned. Raises ``SchemaError`` for a value that the type cannot hold.
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
    items: list[Any] = []
    for _ in cursor.until("}"):
        items += [_list(cursor, item, depth - 1, subject)] if depth > 1 else _list(cursor, item, 0, subject)
    if wrapped:
        cursor.need(")", f"after the default {subject}")
    return tuple(items)


def _constructor(cursor: Cursor) -> bool:
    """Step over ``ListInt(`` or ``std::vector<int>(``, but not over ``{``.

    Returns whether there was a ``(``, which must be closed.
    """
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
            cursor.expected(f"{_EXPECTED[item]} for the default {subject}")
        inner = _scalar(cursor, item, subject)
        cursor.need(")", f"after the default {subject}")
        return inner
    line = cursor.line
    literal_value = _word(cursor, item, subject)
    converted = _CONVERT[item](literal_value)
    if converted is None:
        cursor.fail(f"expected {_EXPECTED[item]} for the default {subject}", repr(literal_value), line=line)
    if isinstance(converted, int) and not -(2**63) <= converted < 2**63:
        cursor.fail(f"the default {subject} must fit in 64 bits", literal_value, line=line)
    if isinstance(converted, float) and math.isfinite(converted) and abs(converted) > FLOAT_MAX:
        cursor.fail(f"the default {subject} must fit in a float of 32 bits", literal_value, line=line)
    return converted


def _calls(cursor: Cursor) -> bool:
    """Whether the name at the cursor begins a conversion: ``Int(1)``, ``std::string("a")``."""
    return cursor.ahead("(", 1) or cursor.ahead("<", 1) or (cursor.ahead("std") and cursor.ahead("::", 1))


def _word(cursor: Cursor, item: str, subject: str) -> Any:
    """Read the literal or constant at the cursor, in its own type."""
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
    return cursor.expected(f"{_EXPECTED[item]} for the default {subject}")


def _behind_sign(cursor: Cursor, subject: str) -> int | float:
    """Read a number in brackets behind a sign: ``-(1)``. Other brackets are read by ``_scalar``."""
    cursor.need("(", "")
    line, number = cursor.line, _word(cursor, "float", subject)
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        cursor.fail(f"expected a number behind the sign of the default {subject}", repr(number), line=line)
    cursor.need(")", f"after the default {subject}")
    return number


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
_MAX_DIGITS = 400
"""Characters of a number; no type of an attribute needs more."""


def _number(cursor: Cursor, subject: str) -> int | float:
    text = cursor.token.text.replace("'", "")
    if len(text) > _MAX_DIGITS:
        cursor.fail(f"the default {subject} must be a number of at most {_MAX_DIGITS} characters", text)
    integer, hexadecimal, decimal = (form.fullmatch(text) for form in (_INTEGER, _HEX_FLOAT, _FLOAT))
    if integer is None and hexadecimal is None and decimal is None:
        cursor.expected(f"a number for the default {subject}")
    cursor.next()
    number: int | float
    if integer:
        digits = integer[1]
        octal = len(digits) > 1 and digits[1].isdigit() and digits[0] == "0"
        number = int(digits, 8 if octal else 0)
    elif hexadecimal:
        try:
            number = float.fromhex(hexadecimal[1])
        except OverflowError:
            number = math.inf
    else:
        assert decimal is not None
        number = float(decimal[1])
    if abs(number) >= 2**128:  # fits neither in 64 bits nor in a float
        cursor.fail(f"the default {subject} must fit in a float of 32 bits", text)
    return number


def _whole(value: Any) -> int | None:
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return int(value) if isinstance(value, int) else None


def _to_dtype(value: Any) -> DTypeName | None:
    if isinstance(value, int) and not isinstance(value, bool) and value in _NAMES:
        return DTypeName(_NAMES[value])
    return value if isinstance(value, DTypeName) else None


_CONVERT: dict[str, Callable[[Any], Any]] = {  # as C++ converts a value; None where that would lose something
    "str": lambda value: None if isinstance(value, DTypeName) or not isinstance(value, str) else value,
    "dtype": _to_dtype,
    "int": lambda value: value if isinstance(value, DTypeName) else _whole(value),
    "float": lambda value: float(value) if isinstance(value, (int, float)) else None,
    "bool": lambda value: bool(value) if _whole(value) in (0, 1) else None,
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


def literal(item: str, default: Any) -> str:
    """Return the C++ text of a default whose items are of this kind; lists are in braces."""
    if isinstance(default, tuple):
        return f"{{{', '.join(literal(item, each) for each in default)}}}"
    if item == "str":
        return quote(default)
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, float) and not math.isfinite(default):
        return "NAN" if math.isnan(default) else "-INFINITY" if default < 0 else "INFINITY"
    return repr(default) if isinstance(default, float) else str(default)


__all__ = ["literal", "quote", "value"]
