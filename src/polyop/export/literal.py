"""Texts as literals and comments of the generated C and C++."""

from __future__ import annotations


def comment(text: str) -> str:
    r"""Return a text that a comment of C may have, on one line.

    >>> print(comment('str s="a/*b*/\n"'))
    str s="a/ *b* /\n"
    """
    shown = "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
    return shown.replace("*/", "* /").replace("/*", "/ *").replace("??/", "?? /")


def literal(text: str) -> str:
    r"""Return a C++ literal; a character outside ASCII is written as its bytes.

    >>> print(literal('a "b"'))
    "a \"b\""
    """
    plain = {'"': '\\"', "\\": "\\\\"}
    if "??" in text:  # no trigraph
        plain["?"] = "\\?"
    parts = (
        plain.get(chr(byte), chr(byte)) if 32 <= byte < 127 else f"\\{byte:03o}" for byte in text.encode()
    )
    return f'"{"".join(parts)}"'
