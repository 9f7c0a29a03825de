"""A position in the tokens of a header; an error names the line, what was expected and what is there."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import NoReturn

from .tokens import Token, fail, tokens
from .vocabulary import DTYPE_ALIASES, DTYPE_NUMBERS


class Cursor:
    """A position in the tokens of a header."""

    def __init__(self, text: str, file: str) -> None:
        """Read the text; raises ``SchemaError`` for what is no C++ token."""
        self.file = file
        self.tokens = tokens(text, file)
        self.at = 0

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.at]

    @property
    def line(self) -> int:
        """The line of the next token."""
        return self.token.line

    def fail(
        self, rule: str, seen: object = None, hint: str | None = None, line: int | None = None
    ) -> NoReturn:
        """Raise ``SchemaError`` for this line."""
        fail(self.file, line or self.line, rule, seen, hint)

    def expected(self, what: str, hint: str | None = None) -> NoReturn:
        """Raise ``SchemaError``: the next token should be ``what``."""
        self.fail(f"expected {what}", self.token, hint)

    def ahead(self, text: str, by: int = 0) -> bool:
        """Whether the token ``by`` places ahead is this word or mark."""
        token = self.tokens[min(self.at + by, len(self.tokens) - 1)]
        return token.kind in ("name", "mark") and token.text == text

    def take(self, text: str) -> bool:
        """Step over this word or mark if it comes next; return whether it did."""
        is_next = self.ahead(text)
        self.at += is_next
        return is_next

    def need(self, text: str, where: str) -> None:
        """Step over this mark, or raise ``SchemaError``."""
        if not self.take(text):
            self.expected(f"{text!r} {where}")

    def name(self, what: str) -> str:
        """Return the next token, an identifier, and step over it; raises ``SchemaError`` for another."""
        if self.token.kind != "name":
            self.expected(what)
        return self.next().text

    def next(self) -> Token:
        """Return the token and step over it; never past the end."""
        token = self.token
        self.at += token.kind != "end"
        return token

    def qualifiers(self, *names: str) -> None:
        """Step over ``name::`` for each of the names that comes next."""
        for name in names:
            if self.ahead(name) and self.ahead("::", 1):
                self.at += 2

    def until(self, close: str) -> Iterator[None]:
        """Yield at the start of each item of a list up to ``close``, and step over ``,`` and ``close``.

        A ``,`` before ``close`` is allowed.
        """
        while not self.take(close):
            yield
            if not self.take(",") and not self.ahead(close):
                self.expected(f"',' or {close!r}")

    def dtype(self) -> str:
        """Return the next token, a ``DT_...``; raises ``SchemaError`` with similar names for another."""
        known = (*DTYPE_NUMBERS, *DTYPE_ALIASES)
        if self.token.text not in known:
            self.unknown("a ge::DataType", known)
        return self.next().text

    def unknown(self, what: str, known: Iterable[str]) -> NoReturn:
        """Raise ``SchemaError``: the next token is none of the known words."""
        words = list(known)
        near = difflib.get_close_matches(self.token.text, words, n=3)
        self.expected(what, f"the nearest are {', '.join(near)}" if near else f"one of {', '.join(words)}")

    def skip_balanced(self, close: str, what: str) -> None:
        """Step behind the matching ``close``; raises ``SchemaError`` if there is none."""
        start, pairs = self.line, {"(": ")", "{": "}", "[": "]"}
        stack = [close]
        while stack:
            token = self.next()
            if token.kind == "end":
                self.fail(f"{what} has no {close!r}", line=start)
            if token.kind == "mark" and token.text in pairs:
                stack.append(pairs[token.text])
            elif token.kind == "mark" and token.text in pairs.values() and token.text != stack.pop():
                self.fail(f"{what} has a bracket that does not match", token, line=token.line)
