"""Parse what ``parallel=``, ``sum=``, ``max=``, ``min=`` and ``halo=`` claim about the dimensions of entries.

A claim is refused here if the text alone shows that it is wrong: an unknown name, a dimension that occurs
twice in one tensor, two claims that contradict each other. Whether a claim is true of the kernel is a
question for a check with numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypedDict

from ..errors import ArgumentTypeError, SchemaError
from ..limits import shown
from ..schema import Schema
from ..texts import did_you_mean
from .entry import Entry, Expression, Number, names_in
from .parse import integer_attributes
from .text import Text, Word

REDUCTIONS: Final = ("sum", "max", "min")
"""How the results of slices are combined, for outputs without the dimension."""
Halo = tuple[Expression, Expression]
"""How many neighbours a slice reads before and after it."""


class Claims(TypedDict, total=False):
    """The keywords beside ``dims=``. Names of dimensions are separated by blanks."""

    parallel: str
    sum: str
    max: str
    min: str
    halo: Mapping[str, Any]


def check_keywords(claims: Mapping[str, Any], function: str, others: Iterable[str] = ()) -> None:
    """Raise ``ArgumentTypeError`` if ``function`` was called with a keyword that is none of :class:`Claims`.

    ``others`` are its further parameters, one of which may be meant.
    """
    for name in claims:
        if name not in Claims.__annotations__:
            hint = did_you_mean(name, [*others, *Claims.__annotations__])
            raise ArgumentTypeError(f"{function}() got an unexpected keyword argument {name!r}", hint=hint)


class ClaimParser:
    """The claims about the entries of one operator. Each method raises ``SchemaError`` for a wrong claim."""

    def __init__(self, schema: Schema, inputs: tuple[Entry, ...], outputs: tuple[Entry, ...]) -> None:
        self.subject = schema.qualified_name
        self.integers = integer_attributes(schema)
        self.results = (*outputs, *(entry for entry in inputs if entry.written))
        self.names = tuple(dict.fromkeys(name for entry in inputs for name in entry.names()))
        self.repeated = {name: e.label for e in (*inputs, *outputs) for name in e.repeated()}
        self.claimed: dict[str, str] = {}
        """Name -> the keyword that claims it: parallel, sum, max or min."""

    def parallel(self, value: str) -> tuple[str, ...]:
        """Return the names, in the order of the entries."""
        text = Text(value, f"{self.subject}: parallel")
        names = {word.text for word in self._new_names(text, "parallel")}
        return tuple(name for name in self.names if name in names)

    def reductions(self, values: Mapping[str, str]) -> dict[str, str]:
        """Return name -> kind, in the order of the entries; ``values`` has a text for each kind."""
        kinds: dict[str, str] = {}
        for kind in REDUCTIONS:
            text = Text(values[kind], f"{self.subject}: {kind}")
            kinds |= {word.text: kind for word in self._new_names(text, kind)}
        return {name: kinds[name] for name in self.names if name in kinds}

    def halo(self, value: Mapping[str, Any]) -> dict[str, Halo]:
        """Return name -> the two widths, in the order of the entries."""
        subject = f"{self.subject}: halo"
        if not isinstance(value, Mapping):
            rule = 'must be a mapping from names to two widths, as in {"n": (1, 1)}'
            raise ArgumentTypeError(subject, rule, f"{shown(value)} ({type(value).__name__})")
        halo: dict[str, Halo] = {}
        for name, widths in value.items():
            text = Text(name, subject)
            self._check(text, Word(name, 0), "halo")
            if name == "...":
                text.fail("cannot give '...' a halo, because its dimensions have no names", 0)
            if self.claimed.get(name) == "parallel":
                rule = f"has {name!r}, which is also parallel: with a halo, slices are not computed alone"
                text.fail(rule, 0)
            if not isinstance(widths, (tuple, list)) or len(widths) != 2:
                rule = f"{name!r} must have two widths, before and after, as in (1, 1)"
                raise SchemaError(subject, rule, shown(widths))
            halo[name] = (self._width(name, widths[0]), self._width(name, widths[1]))
        return {name: halo[name] for name in self.names if name in halo}

    def _new_names(self, text: Text, keyword: str) -> Iterator[Word]:
        """Yield the words of a claim, each a name that no other claim has."""
        for word in text.words():
            self._check(text, word, keyword)
            other = self.claimed.setdefault(word.text, keyword)
            if other != keyword:
                text.fail(f"has {word.text!r}, which is also in {other}=", word.start)
            self._check_results(text, word, keyword)
            yield word

    def _check(self, text: Text, word: Word, keyword: str) -> None:
        """Check that a word is a dimension of an argument that can be sliced."""
        name = word.text
        if name not in self.names:
            rule = f"has {name!r}, which is no dimension of an argument"
            hint = (
                "separate names by blanks" if "," in name else f"known are {', '.join(self.names) or 'none'}"
            )
            text.fail(rule, word.start, hint)
        if name in self.integers:
            rule = f"has {name!r}, which is also an attribute: slices would have another size than it says"
            text.fail(rule, word.start)
        if name in self.repeated:
            rule = (
                f"has {name!r}, which occurs twice in {self.repeated[name]}, so it cannot be {_ROLE[keyword]}"
            )
            text.fail(rule, word.start)

    def _check_results(self, text: Text, word: Word, keyword: str) -> None:
        """Check that the outputs have a parallel dimension, and that one lacks a reduction dimension."""
        lacking = [entry.label for entry in self.results if word.text not in entry.names()]
        if keyword == "parallel" and lacking:
            rule = f"has {word.text!r}, which {lacking[0]} lacks"
            text.fail(rule, word.start, "sum=, max= and min= say how slices are combined in such an output")
        if keyword != "parallel" and not lacking:
            rule = f"has {word.text!r}, which every output has, so nothing is combined along it"
            text.fail(rule, word.start, "a dimension whose slices are computed alone is parallel=")

    def _width(self, name: str, width: Any) -> Expression:
        subject = f"{self.subject}: halo of {name}"
        if isinstance(width, int) and not isinstance(width, bool):
            if not 0 <= width < 2**63:
                raise SchemaError(subject, "a width is at least 0 and has 64 bits", shown(width))
            return Number(width)
        text = Text(width, subject)
        words = list(text.words())
        if len(words) != 1:
            text.fail(
                "needs one width, an integer or arithmetic without blanks", words[1].start if words else 0
            )
        expression = text.expression(words[0])
        for unknown in names_in(expression):
            if unknown not in self.names and unknown not in self.integers:
                rule = f"has {unknown!r}, which is neither a dimension nor an integer attribute"
                text.fail(rule, words[0].start)
        return expression


_ROLE = {
    "parallel": "parallel",
    "sum": "summed over slices",
    "max": "combined over slices",
    "min": "combined over slices",
    "halo": "sliced with a halo",
}
