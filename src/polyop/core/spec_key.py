"""The dtypes and numbers of dimensions of several tensors: a value, with its two text forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .dtypes import dtype
from .spec import Spec

ABSENT, UNWANTED = "-", "~"


@dataclass(frozen=True)
class SpecKey:
    """What derived kernels are made for: (dtype, dimensions) of each tensor, None for an absent one.

    ``wanted`` tells of which tensors a gradient is asked for. The text goes through frameworks as an
    attribute of an operator; the word is a part of an operator's name.

    >>> key = SpecKey.of([Spec((2, 3), dtype("float32")), None], (False, True))
    >>> str(key), key.word
    ('float32:2~ -', 'float32_2~__none')
    >>> SpecKey.parse(str(key)) == key
    True
    """

    rows: tuple[tuple[str, int] | None, ...]
    wanted: tuple[bool, ...]

    @classmethod
    def of(cls, specs: Sequence[Spec | None], wanted: Sequence[bool] = ()) -> SpecKey:
        """Return the key of tensors; all are wanted where nothing is said."""
        rows = (None if spec is None else (spec.dtype.name, len(spec.shape)) for spec in specs)
        return cls(tuple(rows), tuple(wanted) or (True,) * len(specs))

    @classmethod
    def parse(cls, text: str) -> SpecKey:
        """Return the key of a text; raises ``ValueError`` for any other text."""
        rows, wanted = [], []
        for word in text.split():
            name, _, rank = word.removesuffix(UNWANTED).partition(":")
            rows.append(None if name == ABSENT else (name, int(rank)))
            wanted.append(not word.endswith(UNWANTED))
        return cls(tuple(rows), tuple(wanted))

    @classmethod
    def parse_word(cls, word: str) -> SpecKey:
        """Return the key of a word; raises ``ValueError`` for any other one."""
        return cls.parse(word.replace("__", " ").replace("_", ":").replace("none", ABSENT))

    def __str__(self) -> str:
        """Return the text: ``dtype:dimensions`` of each tensor."""
        texts = (ABSENT if row is None else f"{row[0]}:{row[1]}" for row in self.rows)
        return " ".join(
            text if flag else text + UNWANTED for text, flag in zip(texts, self.wanted, strict=True)
        )

    @property
    def word(self) -> str:
        """The text as a part of a name."""
        return str(self).replace(ABSENT, "none").replace(":", "_").replace(" ", "__")

    @property
    def specs(self) -> list[Spec | None]:
        """Specs of these dtypes and numbers of dimensions; their sizes mean nothing."""
        return [None if row is None else Spec((0,) * row[1], dtype(row[0])) for row in self.rows]
