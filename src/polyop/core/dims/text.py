"""The words of an author's text, with their positions, and errors that show the text with a caret."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

from ..errors import ArgumentTypeError, SchemaError
from ..limits import shown
from ..texts import with_caret
from .entry import PRECEDENCE, Binary, Expression, Name, Number

_MAX_TEXT = 20_000
"""Characters of a text: more dimensions than tensors of any host have."""
_MAX_WORD = 200
"""Characters of one size, which bounds the depth of its tree."""
_MAX_DIGITS = 18
"""Digits of a number: it fits 64 bits."""
NAME = re.compile(r"(?!_\Z)[A-Za-z_][A-Za-z_0-9]*")
"""A name; ``_`` alone is none, because it stands for any size."""
_TOKEN = re.compile(r"[0-9]+|[A-Za-z_][A-Za-z_0-9]*|//|[-+*/()]")


class Word(NamedTuple):
    """Characters without a blank, and where they start in the text."""

    text: str
    start: int


class Text:
    """An author's text. ``subject`` says in errors what it is: ``"ns::f: dims"``."""

    def __init__(self, text: Any, subject: str) -> None:
        """Check the type and the length; raises ``ArgumentTypeError`` or ``SchemaError``."""
        if not isinstance(text, str):
            raise ArgumentTypeError(subject, "must be a text", f"{shown(text)} ({type(text).__name__})")
        if len(text) > _MAX_TEXT:
            raise SchemaError(subject, f"has at most {_MAX_TEXT} characters", len(text))
        self.text, self.subject = re.sub(r"\s", " ", text), subject

    def fail(self, rule: str, position: int, hint: str | None = None) -> NoReturn:
        """Raise ``SchemaError`` about a position in the text."""
        raise SchemaError(self.subject, with_caret(rule, self.text, position), hint=hint)

    def words(self, start: int = 0, end: int | None = None) -> Iterator[Word]:
        """Yield the words of the text, or of a part of it."""
        for match in re.finditer(r"[^ ]+", self.text[start:end]):
            yield Word(match[0], start + match.start())

    def number(self, word: Word) -> Number:
        """Return a number of decimal digits."""
        if len(word.text) > _MAX_DIGITS:
            self.fail(f"has a number of more than {_MAX_DIGITS} digits", word.start)
        return Number(int(word.text))

    def expression(self, word: Word) -> Expression:
        """Return the arithmetic of a word; raises ``SchemaError``."""
        if len(word.text) > _MAX_WORD:
            self.fail(f"has a size of more than {_MAX_WORD} characters", word.start)
        return _Arithmetic(self, word).whole()


class _Arithmetic:
    """A recursive-descent parser of one word: sums of products of names, numbers and parentheses."""

    def __init__(self, text: Text, word: Word) -> None:
        self.text, self.tokens = text, []
        end = len(word.text)
        position = 0
        while position < end:
            match = _TOKEN.match(word.text, position)
            if match is None:
                rule = "holds a character that no size has; a size is arithmetic of names and integers"
                text.fail(rule, word.start + position)
            self.tokens.append(Word(match[0], word.start + position))
            position = match.end()
        self.tokens.append(Word("", word.start + end))
        self.at = 0

    def whole(self) -> Expression:
        expression = self.operation(1)
        if self.tokens[self.at].text:
            self.text.fail("needs an operator or the end of the size here", self.tokens[self.at].start)
        return expression

    def operation(self, rank: int) -> Expression:
        """Return what operators of this precedence join, the leftmost first."""
        if rank > max(PRECEDENCE.values()):
            return self.operand()
        left = self.operation(rank + 1)
        while PRECEDENCE.get(self.tokens[self.at].text) == rank:
            self.at += 1
            left = Binary(self.tokens[self.at - 1].text, left, self.operation(rank + 1))
        return left

    def operand(self) -> Expression:
        token = self.tokens[self.at]
        self.at += 1
        if token.text == "(":
            inner = self.operation(1)
            if self.tokens[self.at].text != ")":
                self.text.fail("needs ')' here", self.tokens[self.at].start)
            self.at += 1
            return inner
        if token.text.isdigit():
            return self.text.number(token)
        if NAME.fullmatch(token.text):
            return Name(token.text)
        return self.text.fail("needs a name, an integer or '(' here (arithmetic has no blanks)", token.start)
