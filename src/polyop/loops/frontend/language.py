"""The words that a loop kernel may call, as a table, with what each means on NumPy scalars.

A word of Python numbers gives a Python number: ``exp(0.5)`` takes the dtype of its operator's other operand,
as ``0.5`` does.

>>> WORDS["sqrt"].meaning(4.0), WORDS["sqrt"].meaning(np.float32(4)).dtype
(2.0, dtype('float32'))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core import dtypes
from ..ir.grammar import BOOL, FLOAT, INT, PARTS, Expr, Type
from ..ir.operators import OPERATORS
from ..ir.types import BYTE_FLOATS
from . import composed, meanings
from .dtype_limits import finfo, iinfo
from .random_numbers import MAX_COUNTER_WORDS, random, random_normal

NUMBERS = tuple(row.name for row in dtypes.DTYPES if row.c and row.name not in BYTE_FLOATS)
"""The dtypes that real numbers of a loop kernel can have."""
DTYPES = (*NUMBERS, *BYTE_FLOATS, *PARTS)
"""The dtypes that its tensors can have."""


@dataclass(frozen=True, slots=True)
class Word:
    """A row: a name, how many inputs it takes, and what it computes.

    ``kind`` is "buffer", "loop", "with", "cast", "size", "math", "composed", "complex", "reduction", "random"
    or "limit".
    ``max_inputs`` is None if there is no limit. ``operator`` is a row of ``OPERATORS``, for "math"; ``type``
    is the result's, for "cast".
    """

    name: str
    kind: str
    min_inputs: int
    max_inputs: int | None
    meaning: Callable[..., Any]
    operator: str = ""
    type: Type | None = None
    reduces: str = ""
    """The operator that combines the elements of a row, for "reduction" and for max and min of one input."""
    pairs: bool = False
    """Whether the inputs after the first ``min_inputs`` come in pairs."""
    parameters: tuple[str, ...] = ()
    """The names of the inputs, for a word that a call may give them by name."""
    defaults: tuple[Any, ...] = ()
    """The values of the last ``parameters``."""
    expansion: Callable[..., Expr] | None = None
    """The word as an expression of operators, for "composed"; for ``round`` with digits."""
    spellings: tuple[str, ...] = ()
    """Other names of the word in NumPy and ``math``."""
    soft: bool = False

    @property
    def is_soft(self) -> bool:
        """Whether a kernel may give the name to a variable or to a helper of its own."""
        return self.soft or self.kind in ("reduction", "random", "complex", "composed", "limit")

    def takes(self, count: int) -> bool:
        """Whether it can be called with ``count`` inputs."""
        fits = count >= self.min_inputs and (self.max_inputs is None or count <= self.max_inputs)
        return fits and (not self.pairs or (count - self.min_inputs) % 2 == 0)

    def counts(self) -> str:
        """Return how many inputs it takes, in words, for an error."""
        names = ("no", "one", "two", "three", "four", "five")
        if self.pairs:
            return f"{names[self.min_inputs]} inputs, and two for each further pair"
        if self.max_inputs is None:
            return f"{names[self.min_inputs]} or more inputs"
        if self.min_inputs == self.max_inputs:
            return f"{names[self.min_inputs]} input{'s' * (self.min_inputs != 1)}"
        return f"{names[self.min_inputs]} to {names[self.max_inputs]} inputs"


def _math(
    name: str, meaning: Callable[..., Any], least: int, most: int | None, *, operator: str = "", **rest: Any
) -> Word:
    return Word(name, "math", least, most, meanings.of_numbers(meaning), operator or name, **rest)


def _of_operators() -> Iterator[Word]:
    for row in OPERATORS.values():
        if row.is_word:
            rest: dict[str, Any] = {"spellings": row.spellings, "soft": row.is_soft}
            yield _math(row.name, row.meaning, row.arity, row.arity, **rest)


def of_composed(row: composed.Composed) -> Word:
    """Return the word of a row of composed.py."""
    names = tuple(row.parameters.split())
    return Word(
        row.name,
        "composed",
        len(names) - len(row.defaults),
        len(names),
        meanings.of_numbers(row.meaning),
        parameters=names,
        defaults=row.defaults,
        expansion=row.expansion,
        spellings=row.spellings,
    )


_ROWS = (
    Word("output_tensor", "buffer", 2, 2, meanings.zeros),
    Word("allocate", "buffer", 2, 3, meanings.zeros),  # the third, AKG's memory scope, has no meaning here
    *(Word(name, "loop", 1, 3, range) for name in ("range", "serial", "vectorize", "parallel", "reduce")),
    Word("prange", "loop", 1, 3, range, soft=True),
    Word("grid", "loop", 1, 1, meanings.grid),
    Word("attr", "with", 2, 2, meanings.without_meaning),
    Word("block_realize", "with", 1, 1, meanings.without_meaning),
    Word("len", "size", 1, 1, len),
    Word("finfo", "limit", 1, 2, finfo),
    Word("iinfo", "limit", 1, 2, iinfo),
    *(Word(name, "cast", 1, 1, meanings.cast(name), type=Type(name)) for name in DTYPES if name != "bool"),
    Word("bool_", "cast", 1, 1, meanings.cast("bool"), type=BOOL),
    Word("bool", "cast", 1, 1, meanings.cast("bool"), type=BOOL),
    Word("int", "cast", 1, 1, int, type=INT),
    Word("float", "cast", 1, 1, float, type=FLOAT),
    *_of_operators(),
    # words that take another number of inputs than their operator, or that have another name
    _math("round", meanings.round_number, 1, 2, expansion=composed.round_to, spellings=("rint",)),
    _math("mod", np.remainder, 2, 2, operator="%", spellings=("remainder",), soft=True),
    _math("gcd", meanings.folded(np.gcd), 2, None, soft=True),
    _math("lcm", meanings.folded(np.lcm), 2, None, soft=True),
    _math("pow", lambda x, y: x**y, 2, 2),
    _math("power", lambda x, y: x**y, 2, 2, operator="pow"),
    _math("ceil_div", lambda x, y: (x + y - 1) // y, 2, 2),
    _math("with_gradient", meanings.with_gradient, 3, None, pairs=True),  # (value, x, slope, ...)
    _math("where", meanings.where, 3, 3, operator="select", soft=True),
    # NaN if any input is, unlike the built-in max and min; of one input, a row, its greatest element
    _math("max", meanings.greatest, 1, None, reduces="max", spellings=("maximum", "amax")),
    _math("min", meanings.least, 1, None, reduces="min", spellings=("minimum", "amin")),
    *map(of_composed, composed.ROWS),
    *(
        Word(name, "complex", 1, most, meanings.of_numbers(meaning), spellings=spellings)
        for name, most, meaning, spellings in (
            ("complex", 2, meanings.complex_number, ()),
            ("real", 1, np.real, ()),
            ("imag", 1, np.imag, ()),
            ("conj", 1, np.conj, ("conjugate",)),
            ("angle", 1, np.angle, ()),
        )
    ),
    Word("sum", "reduction", 1, 1, np.sum, reduces="+"),
    Word("prod", "reduction", 1, 1, np.prod, reduces="*"),
    Word("mean", "reduction", 1, 1, np.mean, reduces="+"),
    Word("any", "reduction", 1, 1, np.any, reduces="+"),
    Word("all", "reduction", 1, 1, np.all, reduces="*"),
    Word("dot", "reduction", 2, 2, lambda x, y: np.sum(x * y), reduces="+"),
    Word("random", "random", 2, 1 + MAX_COUNTER_WORDS, random),  # (key, counter, ...), and dtype= by keyword
    Word("random_normal", "random", 2, 1 + MAX_COUNTER_WORDS, random_normal),
)

WORDS: dict[str, Word] = {row.name: row for row in _ROWS}
"""Every word, by its name."""


def is_word(name: str) -> bool:
    """Whether a name means a word of the language, whatever the module has under it."""
    return name in WORDS and not WORDS[name].is_soft


SPELLINGS = {spelling: row.name for row in _ROWS for spelling in row.spellings}
"""Words by their other names in NumPy and ``math``."""
LOOPS = tuple(name for name, row in WORDS.items() if row.kind == "loop")
BUFFERS = tuple(name for name, row in WORDS.items() if row.kind == "buffer")
