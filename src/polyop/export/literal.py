"""Texts as literals of the generated C and C++."""

from __future__ import annotations


def literal(text: str) -> str:
    r"""Return a C++ literal; a character outside ASCII is written as its bytes.

    >>> print(literal('a "b"'))
    "a \"b\""
    """
    plain = {'"': '\\"', "\\": "\\\\"}
    parts = (
        plain.get(chr(byte), chr(byte)) if 32 <= byte < 127 else f"\\{byte:03o}" for byte in text.encode()
    )
    return f'"{"".join(parts)}"'
