"""Parse the text of a schema. Errors show the text with a caret under the wrong place.

A recursive-descent parser over a list of tokens; the grammar is in :mod:`polyop.core.schema`.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

from .errors import ArgumentTypeError, SchemaError
from .limits import is_text, shown
from .schema import BASES, MISSING, Argument, Return, Schema, Type, alias_names
from .texts import did_you_mean, with_caret

_MAX_SCHEMA = 200_000
"""Characters of a schema: room for more arguments than any host takes."""
_MAX_DEPTH = 8
"""Nested lists, in a type and in a default."""
_MAX_DIGITS = 400
"""Digits of a number; no float64 has more before its decimal point."""
_MAX_LIST = 4096
"""The N of ``int[N]``, because a single default value is expanded to a list of N."""
_OF_CPP = {"double": "float", "int32_t": "int", "int64_t": "int", "long": "int", "string": "str"}
"""C++'s names, and those of schemas."""
_LEXEMES = r"""\s*(?:
      (?P<number>[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?[A-Za-z_0-9]*)
    | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<name>[A-Za-z_][A-Za-z_0-9]*)
    | (?P<mark>->|::|[()\[\],=*?!|.])
    )"""
_LIST = re.compile(r"\[([0-9]*)\]")
_ALIAS = r"[a-z][a-z0-9]*"  # torch.library.custom_op writes a0, a1, ...
_SET = rf"{_ALIAS}(\|{_ALIAS})*"
_NUMBER = re.compile(r"[-+]?(?:(?P<int>\d+)|(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?)", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int


def parse(text: str) -> Schema:
    """Return the schema that ``text`` describes.

    >>> str(parse("demo::scale(Tensor x, *, float alpha=1.0) -> Tensor"))
    'demo::scale(Tensor x, *, float alpha=1.0) -> Tensor'

    Raises ``SchemaError`` for a text that breaks the grammar, is too long, or cannot be UTF-8;
    ``ArgumentTypeError`` for a value that is no string.
    """
    if not isinstance(text, str):
        raise ArgumentTypeError("schema", "must be a text", f"{shown(text)} ({type(text).__name__})")
    return _parsed(text)


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Schema:
    if len(text) > _MAX_SCHEMA:
        hint = "pass a list of tensors (Tensor[]) instead of one argument for each"
        rule = f"has at most {_MAX_SCHEMA} characters"
        raise SchemaError(f"schema {shown(text[:80])}", rule, len(text), hint=hint)
    if not is_text(text):
        hint = "remove NUL characters and lone surrogates: no framework takes them"
        raise SchemaError("schema", "must be a text that UTF-8 and C can hold", shown(text), hint=hint)
    return _Parser(text).schema()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(self._tokenise())
        self.at = 0
        self.unnamed: set[str] = set()  # the alias names that stand for Tensor!

    def _tokenise(self) -> Iterator[_Token]:
        position = 0
        end = len(self.text.rstrip())
        token = re.compile(_LEXEMES, re.VERBOSE | re.ASCII)  # here, and not at import: re caches it
        while position < end:
            match = token.match(self.text, position)
            if match is None or match.lastgroup is None:
                self.fail("holds a character that no schema has", position)
            yield _Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup))
            position = match.end()
        yield _Token("end", "", end)

    def fail(self, rule: str, position: int | None = None) -> NoReturn:
        """Raise ``SchemaError`` about a position in the text, by default that of the current token."""
        start = self.tokens[self.at].start if position is None else position
        raise SchemaError("schema", with_caret(rule, self.text, start))

    @property
    def token(self) -> _Token:
        current: _Token = self.tokens[self.at]
        return current

    def take(self, text: str) -> bool:
        """Whether the current token is this one; if so, go on to the next."""
        if self.token.kind in ("mark", "name") and self.token.text == text:
            self.at += 1
            return True
        return False

    def need(self, text: str) -> None:
        if not self.take(text):
            self.fail(f"needs {text!r} here")

    def name(self, role: str) -> str:
        token = self.token
        if token.kind != "name":
            self.fail(f"needs {role} here")
        if keyword.iskeyword(token.text):
            self.fail(f"{role} must not be the Python keyword {token.text!r}")
        self.at += 1
        return token.text

    def schema(self) -> Schema:
        namespace, name, overload = "", self.name("the operator's name"), ""
        if self.take("::"):
            namespace, name = name, self.name("the operator's name")
        if self.take("."):
            overload = self.name("the overload's name")
        arguments = self.arguments()
        self.need("->")
        returns = self.returns()
        if self.token.kind != "end":
            self.fail("ends before this")
        schema = Schema(namespace, name, arguments, returns, overload)
        self.check(schema)
        return schema

    def arguments(self) -> tuple[Argument, ...]:
        self.need("(")
        arguments: dict[str, Argument] = {}
        keyword_only = False
        while not self.take(")"):
            if (arguments or keyword_only) and self.tokens[self.at - 1].text != ",":
                self.fail("needs ',' or ')' here")
            if self.take("*"):
                if keyword_only:
                    self.fail("has a second '*'", self.tokens[self.at - 1].start)
                keyword_only = True
            else:
                argument = self.argument(keyword_only, arguments)
                arguments[argument.name] = argument
            if not self.take(",") and self.token.text != ")":
                self.fail("needs ',' or ')' here")
        if self.tokens[self.at - 2].text == ",":
            self.fail("ends in ',' without an argument", self.tokens[self.at - 2].start)
        return tuple(arguments.values())

    def argument(self, keyword_only: bool, others: Mapping[str, Argument]) -> Argument:
        kind = self.type()
        start = self.token.start
        name = self.name("the argument's name")
        if name in others:
            self.fail(f"names two arguments {name!r}", start)
        default: Any = MISSING
        if self.take("="):
            start = self.token.start
            default = self.default()
            default = self.fit(kind, default, start)
        return Argument(name, kind, default, keyword_only)

    def returns(self) -> tuple[Return, ...]:
        if not self.take("("):
            return (Return(self.type()),)
        results: list[Return] = []
        while not self.take(")"):
            if results:
                self.need(",")
            kind = self.type()
            results.append(Return(kind, self.name("the result's name") if self.token.kind == "name" else ""))
        return tuple(results)

    def type(self) -> Type:
        start = self.token.start
        base = self.name("a type")
        if base not in BASES:
            near = f"which is {_OF_CPP[base]} here" if base in _OF_CPP else did_you_mean(base, BASES)
            known = near or f"the types are {', '.join(sorted(BASES))}"
            self.fail(f"does not know the type {base!r}, {known}", start)
        alias = self.alias() if base == "Tensor" and self.take("(") else ""
        if base == "Tensor" and not alias and self.take("!"):  # written, and no result is this argument
            words = {token.text for token in self.tokens}
            alias = f"{next(name for name in alias_names() if name not in words | self.unnamed)}!"
            self.unnamed.add(alias[:-1])
        suffixes: list[str] = []
        while self.token.text in ("?", "["):
            if self.take("?"):
                if suffixes and suffixes[-1] == "?":
                    self.fail("says '?' twice", self.tokens[self.at - 1].start)
                suffixes.append("?")
                continue
            match = _LIST.match(self.text, self.token.start)
            if match is None:
                self.fail("needs '[]' or '[N]' here")
            if len(match[1]) > 9 or int(match[1] or 0) > _MAX_LIST:
                self.fail(f"has a list of more than {_MAX_LIST} items; write '[]' for any number")
            suffixes.append(match[0])
            if len(suffixes) > 2 * _MAX_DEPTH:
                self.fail(f"has more than {_MAX_DEPTH} lists inside each other")
            while self.token.start < match.end() and self.token.kind != "end":
                self.at += 1
        return Type(base, tuple(suffixes), alias)

    def alias(self) -> str:
        text = ""
        while not self.take(")"):
            if self.token.kind not in ("name", "mark") or self.token.text in "([,=":
                self.fail("needs an alias such as (a!) here")
            between = (
                " " if self.token.kind == "name" and text[-1:].isalnum() else ""
            )  # two names: refused below
            text += f" {self.token.text} " if self.token.text == "->" else between + self.token.text
            self.at += 1
        if not re.fullmatch(rf"{_SET}!?( -> (\*|{_SET}))?", text):
            self.fail(f"has the alias ({text}), which is not of the form (a), (a!) or (a -> *)")
        return text

    def number(self, text: str) -> int | float:
        match = _NUMBER.fullmatch(text)
        if match is None:
            self.fail("has a number that is not decimal")
        if len(text) > _MAX_DIGITS:
            self.fail(f"has a number of more than {_MAX_DIGITS} digits")
        self.at += 1
        return int(text) if match["int"] else float(text)

    def default(self, depth: int = 0) -> Any:
        token = self.token
        if token.kind == "string":
            self.at += 1
            return re.sub(r"\\(.)", r"\1", token.text[1:-1])
        if token.kind == "number":
            return self.number(token.text)
        for text, value in (("True", True), ("False", False), ("None", None)):
            if self.take(text):
                return value
        if self.take("["):
            if depth == _MAX_DEPTH:
                self.fail(f"has more than {_MAX_DEPTH} lists inside each other")
            items: list[Any] = []
            while not self.take("]"):
                if items:
                    self.need(",")
                items.append(self.default(depth + 1))
            return tuple(items)
        return self.fail("needs a default value here")

    def fit(self, kind: Type, value: Any, start: int) -> Any:
        """Return a default value as the type has it; ``start`` is its position, for errors."""
        if value is None:
            if not kind.is_optional:
                self.fail(f"gives None to {kind}, which is not optional", start)
            return None
        if kind.is_tensor:
            self.fail("gives a tensor a default; only None is possible", start)
        if kind.is_list:
            return self.fit_list(kind, value, start)
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            self.fail("has an integer of more than 64 bits", start)
        if isinstance(value, float) and kind.base in ("int", "SymInt") and value.is_integer():
            value = int(value)  # PyTorch takes it, and prints it as 0.
        if isinstance(value, int) and not isinstance(value, bool) and kind.base == "float":
            return float(value)
        if isinstance(value, float) and math.isinf(value):
            self.fail("has a number beyond those of float64", start)
        allowed = _VALUES.get(kind.base)
        if allowed and type(value) not in allowed:
            self.fail(f"gives {kind} the default {shown(value)}", start)
        return value

    def fit_list(self, kind: Type, value: Any, start: int) -> Any:
        suffixes = kind.suffixes[:-1] if kind.is_optional else kind.suffixes
        item, size = Type(kind.base, suffixes[:-1]), suffixes[-1][1:-1]
        if isinstance(value, tuple):
            return tuple(self.fit(item, each, start) for each in value)
        if not size:
            self.fail(f"gives {kind} a default that is no list", start)
        return (self.fit(item, value, start),) * int(size)  # int[2] k=3 means [3, 3]

    def check(self, schema: Schema) -> None:
        """Check what the grammar does not express: the order of defaults, and the returns."""
        with_default = ""  # the first positional argument that has one
        for argument in schema.arguments:
            if argument.keyword_only:
                with_default = ""
            if argument.default is not MISSING and not with_default:
                with_default = argument.name
            elif argument.default is MISSING and with_default and not argument.keyword_only:
                self.fail(f"has {argument.name!r} without a default after {with_default!r} with one", 0)
        names = {name for a in schema.arguments for name in re.findall(_ALIAS, a.type.alias)}
        for result in schema.returns:
            if result.type.is_list and result.type.alias:
                self.fail("returns a list that aliases an argument, which no host can express", 0)
            if not set(re.findall(_ALIAS, result.type.alias)) <= names:
                self.fail(f"returns the alias ({result.type.alias}) of no argument", 0)
            one_list = len(schema.returns) == 1 and result.type.suffixes == ("[]",)
            if not result.type.is_tensor or (result.type.suffixes and not one_list):
                self.fail(f"returns {result.type}; an operator returns tensors, or one list of them", 0)


_VALUES = {  # base type -> Python types of its defaults
    "int": (int,), "SymInt": (int,), "float": (float, int), "bool": (bool,), "str": (str,),
    "ScalarType": (str, int), "Device": (str,), "Scalar": (int, float, bool),
    "complex": (complex, float, int),
}  # fmt: skip
