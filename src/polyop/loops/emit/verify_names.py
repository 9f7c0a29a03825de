"""Verify printed text: each name on a line is declared in a scope around it.

It is for text what ``ir/verify.py`` is for loops. It reads the text, whichever printer made it, as far as C's
scopes need: blocks, heads of loops and functions, declarations. A ``Writer`` prints one statement or one head
on a line. What the headers in include/polyop/loops and the compilers declare is known by its form, and no
author's name has that form (``c_text.identifier``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .common.c_text import HEADERS, SIZES

_WORD = r"(?:->|::|\.)?[^\W\d]\w*|\.?\d[\w.]*"  # names, fields, numbers
_WORDS = re.compile(_WORD)
_TOKENS = re.compile(rf"{_WORD}|\S")
_QUOTED = re.compile(r'/\*.*?\*/|//.*|"(?:\\.|[^"\\])*"')
_ANNOTATION = re.compile(r"__(?:attribute|launch_bounds)__\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)")
_PLAIN = re.compile(r"(?:const )?(\w+)\*?(?: const)?(?: restrict)? (\w+)(?: = ([^,{}]*|\{0\}))?;")
"""The declaration of one name: most declarations are."""
_TYPE = re.compile(
    rf"(?:{'|'.join(SIZES)})(?:v\d+)?|u?int\d*_t|cuda\w+_t|void|char|int|unsigned|float|double"
    r"|polyop_(?:taken|failure|memory|program|queue|stream)"
)
_HEADER = re.compile(
    rf"{HEADERS}|memset|memcpy|min|max|atomic\w+|get_\w+|barrier|dim3|[A-Z][A-Z0-9_]*"  # capitals: a macro
)
"""What is called, or takes template arguments."""
_CONSTANT = re.compile(r"POLYOP_\w+|CLK_\w+|nullptr|(?:thread|block)Idx|(?:block|grid)Dim")
_NEUTRAL_TEXT = "const restrict __restrict__ __restrict static volatile extern inline"
_KEYWORDS_TEXT = """return if else for while do break continue goto switch case default sizeof
struct namespace __global__ __device__ __shared__ __syncthreads __kernel __global __local _Pragma"""
_FIELDS_TEXT = "failure place data wrong offset x y z"
_NEUTRAL = frozenset(_NEUTRAL_TEXT.split())
"""Words in declarations that neither are a type nor are declared."""
_KEYWORDS = frozenset(_KEYWORDS_TEXT.split())
_FIELDS_OF_HEADERS = frozenset(_FIELDS_TEXT.split())
_FIELD = ("->", ".")


class Undeclared(NamedTuple):
    """A name that nothing around a line declares; a field with ``->`` or ``.`` in front."""

    name: str
    line: str


@dataclass
class _Block:
    """What a block declares, and what is read of its current statement."""

    is_struct: bool = False
    names: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    """Names that are visible only in this block."""
    depth: int = 0
    """Open parentheses."""
    declares: int = -1
    """The depth at which a comma is followed by another declared name, or -1."""
    waiting: list[str] = field(default_factory=list)
    """Names in the head of a loop or a function: they belong to the statement or block behind it."""


def undeclared(text: str) -> list[Undeclared]:
    """Return the names in a file of C, CUDA or OpenCL that nothing around their lines declares."""
    reader = _Reader()
    visible = reader.visible
    for line in text.splitlines():
        code = line.strip()
        if code in ("}", "};"):
            reader.close()
        elif code[:1] not in ("", "#"):
            if '"' in code or "/*" in code or "//" in code:
                code = _QUOTED.sub(" ", code).strip()
            if reader.blocks[-1].is_struct or not visible.issuperset(_WORDS.findall(code)):
                if not reader.read_plain(code):
                    reader.read(_ANNOTATION.sub(" ", code), line.strip())
            elif code[-1:] == "{" and code.count("{") > code.count("}"):
                reader.open()
            elif code[-1:] == ";" and reader.blocks[-1].waiting:
                reader.end()
    return reader.undeclared


class _Reader:
    """Reads lines, and knows the blocks around them and the names that are visible there."""

    def __init__(self) -> None:
        self.blocks = [_Block()]
        self.visible = {
            *_NEUTRAL,
            *_KEYWORDS,
            *(f"{sign}{n}" for sign in _FIELD for n in _FIELDS_OF_HEADERS),
        }
        self.types = set[str]()
        self.undeclared: list[Undeclared] = []

    def open(self, *, is_struct: bool = False) -> None:
        """Enter a block; it declares what its head does."""
        self.blocks.append(_Block(is_struct, added=self.blocks[-1].waiting))
        self.blocks[-2].waiting = []

    def close(self) -> None:
        """Leave a block. The names of a struct are fields from here on."""
        block = self.blocks.pop()
        self.visible.difference_update(block.added, block.waiting)
        if block.is_struct:
            self.visible |= {f"{sign}{name}" for sign in _FIELD for name in block.names}

    def end(self) -> None:
        """End a statement, with what its head declares."""
        block = self.blocks[-1]
        self.visible.difference_update(block.waiting)
        block.waiting = []

    def declare(self, name: str) -> None:
        """Make a name visible to the end of its block, or of the statement that a head belongs to."""
        block = self.blocks[-1]
        block.names.append(name)
        if name not in self.visible:
            self.visible.add(name)
            (block.waiting if block.depth else block.added).append(name)

    def read_plain(self, code: str) -> bool:
        """Read the declaration of one name, by names that are visible; return whether a line is that."""
        match = _PLAIN.fullmatch(code)
        if match is None or match[1] not in self.types:
            return False
        if match[3] and not self.visible.issuperset(_WORDS.findall(match[3])):
            return False
        self.declare(match[2])
        return True

    def read(self, code: str, line: str) -> None:
        """Read a line with declarations, or with names that are not visible."""
        words = [*_TOKENS.findall(code), ""]
        before, typed = "", False  # the word before; whether the next name is declared
        for place, word in enumerate(words[:-1]):
            after = words[place + 1]
            if word in _NEUTRAL:
                continue
            if word[0] == "_" or word[0].isalpha():
                typed = self._name(before, word, after, line, typed=typed)
            elif word[0].isdigit() or len(word) > 1:
                self._number_or_field(word, line)
            elif word not in "*&" or before == ")":
                block = self.blocks[-1]
                typed = word == "," and block.declares == block.depth
                self._sign(word, words[:place], last=not after)
            before = word

    def _name(self, before: str, name: str, after: str, line: str, *, typed: bool) -> bool:
        """Read a name; return whether the next one is declared."""
        if before in ("struct", "namespace"):
            self.types.add(name)
            self.visible.add(name)
            return after not in ("{", ";")
        if name in _KEYWORDS:
            return False
        if name in self.types or _TYPE.fullmatch(name):
            self.types.add(name)
            self.visible.add(name)
            return after not in (",", ")", "(")
        if typed:
            self.blocks[-1].declares = self.blocks[-1].depth
            self.declare(name)
        elif name not in self.visible:
            self._use(before, name, after, line)
        return False

    def _use(self, before: str, name: str, after: str, line: str) -> None:
        called = after in ("(", "<") or after.startswith("::") or (before, after) == ("<", ">")
        if not (called and _HEADER.fullmatch(name)) and not _CONSTANT.fullmatch(name):
            self.undeclared.append(Undeclared(name, line))
        self.visible.add(name)

    def _number_or_field(self, word: str, line: str) -> None:
        if word.startswith(_FIELD) and not word[1].isdigit() and word not in self.visible:
            self.undeclared.append(Undeclared(word, line))
        self.visible.add(word)

    def _sign(self, sign: str, before: Sequence[str], *, last: bool) -> None:
        block = self.blocks[-1]
        if sign == "{" and last:
            self.open(is_struct=before[:1] == ["struct"])
        elif sign == "{":
            self.blocks.append(_Block())
        elif sign == "}":
            self.close()
        elif sign in "([":
            block.depth += 1
        elif sign in ")]":
            block.depth -= 1
            block.declares = -1 if block.declares > block.depth else block.declares
        elif sign == ";":
            block.declares = -1
            if not block.depth:
                self.end()
