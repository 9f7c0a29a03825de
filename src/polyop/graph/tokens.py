"""Split the text of a C++ header into tokens, each with its line."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from ..core.errors import SchemaError
from ..core.limits import is_text, shown
from ..core.origin import Origin

MAX_CHARACTERS = 8 << 20
"""Characters of a header. The headers of a whole release of operators have half a million."""
_MAX_DEPTH = 100
"""Nesting of brackets, and of conditionals."""
_PARTS = re.compile(
    r"""(?P<space>\s+)
      | (?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<open>/\*)
      | (?P<raw>R"(?P<fence>[^()\\\s"]{0,16})\()
      | (?P<string>"(?:[^"\\\n]|\\.)*")
      | (?P<char>'(?:[^'\\\n]|\\.)*')
      | (?P<quote>["'])
      | (?P<number>(?:\d|\.\d)(?:[eEpP][-+]|[\w.']|)*)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<mark>::|.)""",
    re.VERBOSE | re.DOTALL,
)
_SIMPLE = {
    "n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\\": "\\", "'": "'",
    '"': '"', "?": "?",
}  # fmt: skip
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]+)|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Token:
    """``kind``: "name", "number", "string" (its value is ``text``), "mark" or "end"."""

    kind: str
    text: str
    line: int

    def __str__(self) -> str:
        """Return the token for a message."""
        if self.kind == "end":
            return "the end of the file"
        return repr(self.text) if self.kind != "string" else f'the string "{self.text}"'


def fail(file: str, line: int, rule: str, seen: object = None, hint: str | None = None) -> NoReturn:
    """Raise the ``SchemaError`` for a place in a header."""
    raise SchemaError(str(Origin(file, line)), rule, seen, hint=hint)


def tokens(text: str, file: str) -> tuple[Token, ...]:
    """Return the tokens, the last one of kind "end"; comments and directives are left out.

    Of an ``#if`` the first branch is read, of ``#if 0`` the others. Raises ``SchemaError`` with file and
    line for a comment, string or conditional without an end.
    """
    if len(text) > MAX_CHARACTERS:
        fail(file, 1, f"a header has at most {MAX_CHARACTERS} characters", len(text), "split it into several")
    if not is_text(text):
        number, line = next((n, row) for n, row in enumerate(text.split("\n"), 1) if not is_text(row))
        hint = "take out NUL characters and halves of surrogate pairs"
        fail(file, number, "a header must be a text that UTF-8 can hold", shown(line), hint)
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    spliced, lines = _splice(text)
    return tuple(_scan(_without_directives(spliced, lines, file), lines, file))


@dataclass(frozen=True, slots=True)
class _Lines:
    """Maps positions in the spliced text to lines of the file; ``joints`` are where lines were joined."""

    starts: list[int]
    joints: list[int]

    def at(self, position: int) -> int:
        return bisect.bisect_right(self.starts, position) + bisect.bisect_right(self.joints, position)


def _splice(text: str) -> tuple[str, _Lines]:
    parts = re.split(r"\\[ \t]*\n", text)
    joints, position = [], 0
    for part in parts[:-1]:
        position += len(part)
        joints.append(position)
    joined = "".join(parts)
    return joined, _Lines([0, *(match.end() for match in re.finditer("\n", joined))], joints)


def _without_directives(text: str, lines: _Lines, file: str) -> str:
    """Return the text with spaces in place of directives and of branches not read; line ends are kept."""
    out: list[str] = []
    branches: list[tuple[int, bool, bool]] = []  # line of the #if; a branch was read; this one is read
    position, in_comment = 0, False
    for row in text.splitlines(keepends=True):
        directive = None if in_comment else re.match(r"[ \t]*#[ \t]*(\w*)[ \t]*(.*)", row)
        if directive:
            _branch(branches, directive[1], directive[2], lines.at(position), file)
        live = not directive and all(branch[2] for branch in branches)
        if live or (directive and "/*" in row):
            in_comment = _ends_in_comment(row, in_comment)
        out.append(row if live else _comment_of(row) if in_comment else re.sub(r"[^\n]", " ", row))
        position += len(row)
    if branches:
        fail(file, branches[-1][0], "the #if has no #endif")
    return "".join(out)


def _comment_of(row: str) -> str:
    start = row.rfind("/*")
    return " " * start + row[start:] if start >= 0 else row


_OUTSIDE = re.compile(r'//|/\*|"(?:[^"\\\n]|\\.)*"?')
"""The start of a comment, or a whole string, since no comment starts inside one."""


def _ends_in_comment(row: str, inside: bool) -> bool:
    position = 0
    while True:
        if inside:
            position = row.find("*/", position) + 2
            if position < 2:
                return True
        match = _OUTSIDE.search(row, position)
        if match is None or match[0] == "//":
            return False
        inside, position = match[0] == "/*", match.end()


def _branch(branches: list[tuple[int, bool, bool]], word: str, rest: str, line: int, file: str) -> None:
    if word in ("if", "ifdef", "ifndef"):
        is_read = not (word == "if" and re.match(r"(0|false)\b", rest))
        branches.append((line, is_read, is_read))
        if len(branches) > _MAX_DEPTH:
            fail(file, line, f"more than {_MAX_DEPTH} conditionals are inside each other")
    elif word in ("else", "elif", "endif"):
        if not branches:
            fail(file, line, f"#{word} without an #if")
        start, was_read, _ = branches.pop()
        if word != "endif":
            branches.append((start, True, not was_read))


def _scan(text: str, lines: _Lines, file: str) -> Iterator[Token]:
    position, depth = 0, 0
    while match := _PARTS.match(text, position):
        kind, line, position = match.lastgroup or "mark", lines.at(match.start()), match.end()
        if kind == "raw":
            end = text.find(f'){match["fence"]}"', position)
            if end < 0:
                fail(file, line, "the raw string has no end", hint=f'close it with ){match["fence"]}"')
            yield Token("string", text[position:end], line)
            position = end + len(match["fence"]) + 2
        elif kind == "open":
            fail(file, line, "the comment has no end", hint="close it with */")
        elif kind == "quote":
            fail(file, line, "the text in quotes does not end on its line", match[0])
        elif kind == "string":
            yield Token("string", unescape(match[0][1:-1], file, line), line)
        elif kind not in ("space", "comment"):
            depth += (match[0] in "({[") - (match[0] in ")}]") if kind == "mark" else 0
            if depth > _MAX_DEPTH:
                fail(file, line, f"more than {_MAX_DEPTH} brackets are inside each other")
            yield Token("mark" if kind == "char" else kind, match[0], line)
    yield Token("end", "", lines.at(len(text.rstrip())))


def unescape(text: str, file: str = "", line: int = 0) -> str:
    r"""Return the value of the inside of a C++ string literal; bytes are read as UTF-8.

    >>> unescape(r"a\tb\x41\"")
    'a\tbA"'

    Raises ``SchemaError`` for an escape that C++ does not have, or bytes that are no UTF-8.
    """
    out = bytearray()
    position = 0
    for match in _ESCAPE.finditer(text):
        out += text[position : match.start()].encode()
        position = match.end()
        octal, hexadecimal, short, long, simple = match.groups()
        if octal or hexadecimal:
            value = int(octal, 8) if octal else int(hexadecimal, 16)
            if value > 255:
                fail(file, line, "an escape in a string must fit in a byte", match[0])
            out.append(value)
        elif short or long:
            value = int(short or long, 16)
            if value > 0x10FFFF or 0xD800 <= value < 0xE000:
                fail(file, line, "an escape in a string must be a character", match[0])
            out += chr(value).encode()
        elif simple in _SIMPLE:
            out += _SIMPLE[simple].encode()
        else:
            fail(file, line, "C++ has no such escape in a string", match[0])
    out += text[position:].encode()
    try:
        return out.decode()
    except UnicodeDecodeError:
        fail(file, line, "a string must be UTF-8", repr(text))
