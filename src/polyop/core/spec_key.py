"""``SpecKey``: the dtypes and ranks of several tensors, as a value and as text.

Derived kernels are compiled for dtypes and ranks, not for sizes, so this is what identifies one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .dtypes import dtype
from .spec import Spec

ABSENT, NO_GRADIENT = "-", "~"


@dataclass(frozen=True)
class SpecKey:
    """The key of a derived kernel: (dtype, rank) of each tensor, or None for an absent tensor.

    ``needs_gradient`` says which tensors need a gradient. Frameworks pass the text as an attribute of an
    operator.

    >>> specs = [Spec((2, 3), dtype("float32")), None]
    >>> str(SpecKey.of(specs, (False, True))), SpecKey.of(specs).name_part
    ('float32:2~ -', 'float32_2__none')
    >>> SpecKey.parse("float32:2~ -") == SpecKey.of(specs, (False, True))
    True
    """

    rows: tuple[tuple[str, int] | None, ...]
    needs_gradient: tuple[bool, ...]

    @classmethod
    def of(cls, specs: Sequence[Spec | None], needs_gradient: Sequence[bool] = ()) -> SpecKey:
        """Return the key of tensors. By default all of them need a gradient."""
        rows = (None if spec is None else (spec.dtype.name, len(spec.shape)) for spec in specs)
        return cls(tuple(rows), tuple(needs_gradient) or (True,) * len(specs))

    @classmethod
    def parse(cls, text: str) -> SpecKey:
        """Return the key that ``str()`` turns into this text; raises ``ValueError`` if there is none."""
        rows, needs_gradient = [], []
        for word in text.split():
            name, _, rank = word.removesuffix(NO_GRADIENT).partition(":")
            rows.append(None if name == ABSENT else (name, int(rank)))
            needs_gradient.append(not word.endswith(NO_GRADIENT))
        return cls(tuple(rows), tuple(needs_gradient))

    @classmethod
    def parse_name_part(cls, name_part: str) -> SpecKey:
        """Return the key whose ``name_part`` this is; raises ``ValueError`` if there is none."""
        return cls.parse(name_part.replace("__", " ").replace("_", ":").replace("none", ABSENT))

    def __str__(self) -> str:
        """Return the text: ``dtype:rank`` of each tensor, with ``~`` if it needs no gradient."""
        texts = (ABSENT if row is None else f"{row[0]}:{row[1]}" for row in self.rows)
        return " ".join(
            text if flag else text + NO_GRADIENT
            for text, flag in zip(texts, self.needs_gradient, strict=True)
        )

    @property
    def name_part(self) -> str:
        """The text for the name of an operator, of a key whose tensors all need a gradient."""
        return str(self).replace(ABSENT, "none").replace(":", "_").replace(" ", "__")

    @property
    def specs(self) -> list[Spec | None]:
        """Specs of these dtypes and ranks. Their sizes are all 0, and have no meaning."""
        return [None if row is None else Spec((0,) * row[1], dtype(row[0])) for row in self.rows]
