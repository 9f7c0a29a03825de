"""``Entry``: the dimensions of one tensor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from .expression import Expression, Name, names_in


@dataclass(frozen=True, slots=True)
class Entry:
    """The dimensions of a tensor, or of each tensor of a list.

    ``label`` names the tensor in errors: ``"argument x"``, ``"output 0"``. ``dimensions`` are expressions,
    or None for any size; those of an argument are names and numbers. ``ellipsis`` says that ``...`` stands
    before them. ``each`` says that the tensor is a list. ``written`` marks an argument that is written in
    place.
    """

    label: str
    dimensions: tuple[Expression | None, ...] = ()
    ellipsis: bool = False
    each: bool = False
    written: bool = False

    def __str__(self) -> str:
        """Return the text of the entry: ``... n 3 _*``."""
        words = ["..."] if self.ellipsis else []
        words += ["_" if size is None else str(size) for size in self.dimensions]
        return " ".join(words) + ("*" if self.each else "")

    def names(self) -> Iterator[str]:
        """Yield ``"..."`` if the entry has it, then each name as often as it occurs."""
        if self.ellipsis:
            yield "..."
        for size in self.dimensions:
            yield from names_in(size)

    def repeated(self) -> set[str]:
        """Return the names that occur more than once."""
        return {name for name, count in Counter(self.names()).items() if count > 1}

    def fixed_rank(self) -> int | None:
        """Return the number of dimensions, or None if ``...`` leaves it open."""
        return None if self.ellipsis else len(self.dimensions)

    def axis(self, name: str) -> int | None:
        """Return the position of a dimension from the end (negative), or None if the entry lacks it."""
        for position, size in enumerate(self.dimensions):
            if size == Name(name):
                return position - len(self.dimensions)
        return None
