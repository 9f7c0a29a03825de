"""``Entry``: the dimensions of one tensor, each with its size as arithmetic: ``n``, ``3``, ``h-k+1``.

An expression is a small tree. It is evaluated on ints, or on a tracer's symbols: it applies only ``+``,
``-``, ``*`` and ``//`` to them, and compares them through a function of the caller. So no symbol becomes a
number.

>>> area = Binary("*", Name("n"), Binary("-", Name("k"), Number(1)))
>>> str(area), evaluate(area, {"n": 5, "k": 3})
('n*(k-1)', 10)
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Union

from ..sizes import same_size, size_text

Same = Callable[[Any, Any], bool]
"""Whether two sizes are equal."""


@dataclass(frozen=True, slots=True)
class Name:
    """A dimension or an integer attribute."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Number:
    """A fixed size."""

    value: int

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Binary:
    """Two expressions with ``+``, ``-``, ``*``, ``//`` or ``/`` between them.

    ``//`` rounds down. ``/`` is exact: sizes that it does not divide are an error.
    """

    operator: str
    left: Expression
    right: Expression

    def __str__(self) -> str:
        """Return the text without blanks, with the parentheses that keep the tree."""
        rank = PRECEDENCE[self.operator]
        left = str(self.left) if _rank(self.left) >= rank else f"({self.left})"
        right = str(self.right) if _rank(self.right) > rank else f"({self.right})"
        return f"{left}{self.operator}{right}"


@dataclass(frozen=True, slots=True)
class AtMost:
    """A size of an output that only the kernel knows, and that is at most ``bound``: ``k<=n``."""

    name: str
    bound: Expression

    def __str__(self) -> str:
        return f"{self.name}<={self.bound}"


Expression = Union[Name, Number, Binary, AtMost]  # noqa: UP007 - Binary is defined with it
PRECEDENCE: Final = {"+": 1, "-": 1, "*": 2, "//": 2, "/": 2}


def _rank(expression: Expression) -> int:
    return PRECEDENCE[expression.operator] if isinstance(expression, Binary) else 3


def names_in(expression: Expression | None) -> Iterator[str]:
    """Yield each name in an expression as often as it occurs; none for None, which is any size.

    A size that depends on data yields none: no dimension of an argument gives it.
    """
    if isinstance(expression, Name):
        yield expression.name
    elif isinstance(expression, Binary):
        yield from names_in(expression.left)
        yield from names_in(expression.right)


def evaluate(expression: Expression, values: Mapping[str, Any], same: Same = same_size) -> Any:
    """Return the value of an expression; of a size that depends on data, its bound.

    Raises ``KeyError`` for a name without a value, and ``ArithmeticError`` with the reason for a division
    by 0 or a ``/`` with a remainder.
    """
    if isinstance(expression, Name):
        return values[expression.name]
    if isinstance(expression, Number):
        return expression.value
    if isinstance(expression, AtMost):
        return evaluate(expression.bound, values, same)
    left = evaluate(expression.left, values, same)
    right = evaluate(expression.right, values, same)
    if expression.operator in ("//", "/"):
        if isinstance(right, int) and right == 0:
            raise ArithmeticError("divides by 0")
        quotient = left // right
        if expression.operator == "/" and not same(quotient * right, left):
            raise ArithmeticError(f"is not whole: {size_text(left)} / {size_text(right)}")
        return quotient
    return _APPLY[expression.operator](left, right)


_APPLY: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}


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
