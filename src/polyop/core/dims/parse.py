"""Parse the entries of ``dims=``; the grammar is in :mod:`polyop.core.dims`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ..schema import Argument, Schema
from .entry import AtMost, Entry, Expression, Name, names_in
from .text import NAME, Text, Word


class _Part(NamedTuple):
    """The text between two commas: where it starts and ends."""

    start: int
    end: int


def parse_entries(text: Text, schema: Schema) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
    """Return the entries of the tensor arguments and of the outputs; raises ``SchemaError``."""
    return _EntryParser(text, schema).entries()


def integer_attributes(schema: Schema) -> set[str]:
    """Return the names of the attributes that are sizes: an ``int`` or a ``SymInt``, no list or optional."""
    return {
        a.name for _, a in schema.attributes() if a.type.base in ("int", "SymInt") and not a.type.suffixes
    }


class _EntryParser:
    def __init__(self, text: Text, schema: Schema) -> None:
        self.text, self.schema = text, schema
        self.integers = integer_attributes(schema)
        self.other_attributes = {
            a.name: a.type for _, a in schema.attributes() if a.name not in self.integers
        }
        self.known: set[str] = set()
        """What sizes of outputs may name: the names of the arguments' entries, and integer attributes."""
        self.data_sizes: dict[str, AtMost] = {}
        """The sizes of outputs that depend on data, by name."""

    def entries(self) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
        text = self.text.text
        arrow = text.find("->")
        if arrow < 0:
            self.text.fail("needs '->' between the entries of arguments and outputs", len(text))
        if (second := text.find("->", arrow + 2)) >= 0:
            self.text.fail("has a second '->'", second)
        arguments = self.schema.tensor_arguments
        names = [argument.name for argument in arguments]
        parts = self.parts(0, arrow, len(arguments), "tensor argument", names)
        inputs = tuple(map(self.input, arguments, parts))
        self.known = {name for entry in inputs for name in entry.names()} | self.integers
        fresh = [self.schema.returns[i] for i in self.schema.fresh]
        for result in fresh:
            if result.type.is_list:
                rule = "cannot give an output of type Tensor[], because it does not say how many tensors"
                self.text.fail(rule, arrow + 2, "give infer= a function of the specs instead")
        labels = [f"output {result.name or number}" for number, result in enumerate(fresh)]
        parts = self.parts(arrow + 2, len(text), len(fresh), "new output")
        return inputs, tuple(map(self.output, labels, parts))

    def parts(self, start: int, end: int, count: int, role: str, names: Sequence[str] = ()) -> list[_Part]:
        """Return the parts between commas, which must be ``count``: one for each tensor of this role."""
        bounds = [start]
        for position in range(start, end):
            if self.text.text[position] == ",":
                bounds += [position, position + 1]
        bounds.append(end)
        parts = [_Part(*pair) for pair in zip(bounds[::2], bounds[1::2], strict=True)]
        if count == 0 and len(parts) == 1 and not self.text.text[start:end].strip():
            return []
        if len(parts) != count:
            surplus = next(self.text.words(*parts[count]), None) if len(parts) > count else None
            position = surplus.start if surplus else min(end, len(self.text.text.rstrip()))
            entries = "1 entry" if len(parts) == 1 else f"{len(parts)} entries"
            tensors = f"{count or 'no'} {role}{'s' * (count != 1)} {', '.join(names)}".rstrip()
            self.text.fail(f"has {entries} for {tensors}", position)
        return parts

    def end_of(self, part: _Part) -> int:
        """Return where the text of a part ends, without the blanks after it."""
        return part.start + len(self.text.text[slice(*part)].rstrip())

    def words(self, part: _Part) -> tuple[list[Word], bool, bool]:
        """Return the words of an entry without ``...`` and ``*``, and whether it has each of these."""
        words = list(self.text.words(*part))
        each = bool(words) and words[-1].text.endswith("*")
        if each:
            word = words.pop()
            if word.text != "*":
                words.append(Word(word.text[:-1], word.start))
        ellipsis = bool(words) and words[0].text == "..."
        words = words[ellipsis:]
        for word in words:
            if word.text == "...":
                rule = "has '...' twice in one entry" if ellipsis else "needs '...' in front of the entry"
                self.text.fail(rule, word.start)
            if word.text.startswith("..."):
                self.text.fail("needs a blank after '...'", word.start + 3)
            if len(word.text) > 1 and word.text.endswith("*"):
                self.text.fail(
                    "needs ',' or '->' after '*', which ends an entry", word.start + len(word.text)
                )
        return words, ellipsis, each

    def input(self, argument: Argument, part: _Part) -> Entry:
        words, ellipsis, each = self.words(part)
        if each != argument.type.is_list:
            rule = f"needs '*' after the entry of {argument.name}, which is {argument.type}"
            if each:
                rule = f"has '*' after the entry of {argument.name}, which is no Tensor[]"
            self.text.fail(rule, self.end_of(part) - each)
        dimensions = tuple(map(self.input_dimension, words))
        return Entry(f"argument {argument.name}", dimensions, ellipsis, each, argument.type.writes)

    def input_dimension(self, word: Word) -> Expression | None:
        if word.text == "_":
            return None
        if word.text.isascii() and word.text.isdigit():
            return self.text.number(word)
        if not NAME.fullmatch(word.text):
            rule = "needs a name, an integer, '_' or '...' here: arithmetic is for outputs"
            self.text.fail(rule, word.start)
        self.check_attribute(word.text, word.start)
        return Name(word.text)

    def output(self, label: str, part: _Part) -> Entry:
        words, ellipsis, each = self.words(part)
        if each:
            self.text.fail(f"has '*' after {label}, which is no Tensor[]", self.end_of(part) - 1)
        if ellipsis and "..." not in self.known:
            self.text.fail("has '...' in an output and in no argument", next(self.text.words(*part)).start)
        return Entry(label, tuple(map(self.output_dimension, words)), ellipsis)

    def output_dimension(self, word: Word) -> Expression:
        if word.text == "_":
            self.text.fail("has '_' in an output, whose sizes must follow from the arguments", word.start)
        if "<=" in word.text:
            return self.data_size(word)
        if word.text in self.data_sizes:
            return self.data_sizes[word.text]
        expression = self.text.expression(word)
        self.check_known(expression, word)
        return expression

    def data_size(self, word: Word) -> AtMost:
        """Return ``k<=n``, whose name is new, or has the same bound as before."""
        name, _, text = word.text.partition("<=")
        if not NAME.fullmatch(name):
            self.text.fail("needs a name before '<='", word.start)
        if name in self.known or name in self.other_attributes:
            rule = f"has {name!r} before '<=', which an argument gives already"
            self.text.fail(rule, word.start, "a size that depends on data has a name of its own")
        start = word.start + len(name) + 2
        if not text:
            self.text.fail("needs a size after '<=', without a blank", start)
        bound = Word(text, start)
        expression = self.text.expression(bound)
        self.check_known(expression, bound)
        size = AtMost(name, expression)
        if self.data_sizes.setdefault(name, size) != size:
            self.text.fail(f"has two bounds of {name!r}", word.start, f"the first is {self.data_sizes[name]}")
        return size

    def check_known(self, expression: Expression, word: Word) -> None:
        """Check that each name is a dimension of an argument, or an integer attribute."""
        for name in names_in(expression):
            if name not in self.known:
                self.check_attribute(name, word.start)
                if name in self.data_sizes:
                    rule = f"has {name!r} in arithmetic, and it depends on data"
                    self.text.fail(rule, word.start, f"it can stand alone: {name}")
                hint = f"known are {', '.join(sorted(self.known - {'...'})) or 'none'}"
                rule = f"has the size {name!r}, which no argument gives"
                match = re.search(rf"\b{name}\b", word.text)
                self.text.fail(rule, word.start + (match.start() if match else 0), hint)

    def check_attribute(self, name: str, position: int) -> None:
        """Check that a name is not that of an attribute which is no integer."""
        if name in self.other_attributes:
            kind = self.other_attributes[name]
            self.text.fail(f"uses attribute {name} as a size, and it is {kind}, no int", position)
