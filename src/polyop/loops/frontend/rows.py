"""Rows: parts of tensors, and what is computed from them element by element.

A row has sizes, and an expression for each of its elements. ``x[i] * w`` is the row whose element k is
``x[i, k] * w[k]``; nothing is computed before a statement asks for the elements. Rows are broadcast as in
NumPy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..ir.grammar import INT, Const, Expr, Load, Op, Size, walk
from ..ir.operate import operate
from ..ir.types import Refusal, kind

Index = Sequence[Expr]


@dataclass(frozen=True, slots=True)
class View:
    """What a row is a part of: ``index`` gives the place in the tensor of a place in the row."""

    buffer: str
    index: Callable[[Index], tuple[Expr, ...]]


@dataclass(frozen=True, slots=True)
class Row:
    """``sizes`` of a row, one or several, and ``element``, which gives the expression at an index."""

    sizes: tuple[Expr, ...]
    element: Callable[[Index], Expr]
    view: View | None = None

    @property
    def first(self) -> Expr:
        """The first element."""
        return self.element([Const(0, INT)] * len(self.sizes))


Value = Expr | Row
Common = Callable[[Expr, Expr], Expr]


def lifted(function: Callable[..., Expr], *operands: Value, common: Common) -> Value:
    """Return the function of the operands: a row, if one is a row. ``common``: see :func:`broadcast`."""
    rows = [operand for operand in operands if isinstance(operand, Row)]
    if not rows:
        return function(*operands)
    sizes = broadcast([row.sizes for row in rows], common)

    def element(index: Index) -> Expr:
        return function(*(at(operand, index) for operand in operands))

    element([Const(0, INT)] * len(sizes))  # raises now what it raises
    return Row(sizes, element)


def at(value: Value, index: Index) -> Expr:
    """Return the element of a value that is broadcast to an index; a number has one element."""
    if not isinstance(value, Row):
        return value
    own = index[len(index) - len(value.sizes) :]
    pairs = zip(value.sizes, own, strict=True)
    return value.element([Const(0, INT) if at_most_one(size) else place for size, place in pairs])


def at_most_one(size: Expr) -> bool:
    """Whether a size is 1, or that of a slice of one place, which is empty where the place is outside.

    :func:`part` gives such a slice a size that says so: ``min(..., 1)``.
    """
    match size:
        case Const(value=number):
            return number <= 1
        case Op(name="min", args=args):
            return any(map(at_most_one, args))
        case Op(name="max", args=args):
            return all(map(at_most_one, args))
    return False


def broadcast(shapes: Sequence[tuple[Expr, ...]], common: Common) -> tuple[Expr, ...]:
    """Return the sizes to which rows of these sizes are broadcast.

    ``common`` returns the size of two that have to be equal, or one of them at most 1, and are not written in
    the same way.
    """
    rank = max(map(len, shapes))
    result: list[Expr] = []
    for axis in range(-rank, 0):
        size: Expr = Const(1, INT)
        for other in (shape[axis] for shape in shapes if len(shape) >= -axis):
            if size == Const(1, INT):
                size = other
            elif other != Const(1, INT) and difference(size, other) != 0:
                size = common(size, other)
        result.append(size)
    return tuple(result)


def difference(one: Expr, other: Expr) -> int | None:
    """Return the difference of two sizes, or None if it depends on sizes."""
    terms: Counter[Expr] = Counter()
    constant = _add(_bare(one), 1, terms) + _add(_bare(other), -1, terms)
    return None if any(terms.values()) else constant


def _bare(size: Expr) -> Expr:
    """Return ``n`` for ``max(n, 0)``: a row of a negative size is one of no elements."""
    clipped = isinstance(size, Op) and size.name == "max" and size.args[1] == Const(0, INT)
    return size.args[0] if clipped and isinstance(size, Op) else size


def _add(size: Expr, factor: int, terms: Counter[Expr]) -> int:
    """Add a multiple of a size to ``terms``; return the constant in it."""
    if isinstance(size, Const):
        return factor * int(size.value)
    if isinstance(size, Op) and size.name in ("+", "-"):
        left, right = size.args
        return _add(left, factor, terms) + _add(right, factor if size.name == "+" else -factor, terms)
    if isinstance(size, Op) and size.name == "neg":
        return _add(size.args[0], -factor, terms)
    terms[size] += factor
    return 0


def part(
    size: Expr, ends: tuple[Expr | None, Expr | None, Expr | None], is_natural: Callable[[Expr], bool]
) -> tuple[Expr, Expr, int]:
    """Return start, size and step of a slice of a dimension, by Python's rules.

    ``is_natural`` tells of an end whether it cannot be negative.
    """
    step = 1 if ends[2] is None else ends[2].value if isinstance(ends[2], Const) else 0
    if not isinstance(step, int) or step == 0 or step < -1:
        raise Refusal("the step of a slice must be a constant: a positive number or -1")
    if step == -1:
        if ends[0] is not None or ends[1] is not None:
            raise Refusal("a slice that runs backwards has no ends", hint="write x[::-1], or a loop")
        return size - 1, size, -1
    start = Const(0, INT) if ends[0] is None else _end(ends[0], size, is_natural)
    stop = size if ends[1] is None else _end(ends[1], size, is_natural)
    if ends[1] is not None and not (isinstance(ends[1], Const) and ends[1].value < 0):
        both = isinstance(stop, Const) and isinstance(size, Const)
        stop = min(stop, size, key=_value) if both else operate("min", stop, size)
    length = stop - start
    one_place = of_one_place(size, ends[0], ends[1], step)
    if one_place and not at_most_one(length):
        length = operate("min", length, Const(1, INT))
    if step > 1 and not one_place:
        length = (length + Const(step - 1, INT)) // Const(step, INT)
    return start, length, step


def is_empty(size: Expr) -> bool | None:
    """Whether a dimension of a row has no element where its first one exists; None where sizes decide."""
    start = 0
    if isinstance(size, Op) and size.name == "-":
        if isinstance(size.args[0], Size):
            return False  # to the end of the tensor
        if isinstance(size.args[1], Const):
            start, size = _value(size.args[1]), size.args[0]
    if isinstance(size, Op) and size.name == "min":
        ends = [end for end in size.args if not isinstance(end, Size)]
        size = ends[0] if len(ends) == 1 else size
    if isinstance(size, Const):
        return _value(size) <= start
    return False if isinstance(size, Size) and not start else None


def of_one_place(size: Expr, start: Expr | None, stop: Expr | None, step: int = 1) -> bool:
    """Whether the ends of a slice are one step apart, as in ``x[i : i + 1]``, ``x[-1:]`` and ``x[1:3:2]``."""
    if start is None:
        start = Const(0, INT)
    elif stop is None and isinstance(start, Const) and start.value < 0:
        start = size + start
    apart = difference(size if stop is None else stop, start)
    return apart is not None and 0 < apart <= step


def is_narrow_step(start: Expr, stop: Expr) -> bool:
    """Whether the ends of a slice are one apart unless a dtype wraps: ``x[i : i + 1]`` where i is an int8."""
    return difference(_as_written(stop), _as_written(start)) == 1


def _as_written(end: Expr) -> Expr:
    """Return an end as it is before it becomes an int64."""
    while isinstance(end, Op) and end.name in ("cast", "min") and kind(end.args[0].type) in "iu":
        if end.name == "min" and end.args[1] != Const(2**63 - 1, end.type):
            break
        end = end.args[0]
    return end


def _value(size: Expr) -> int:
    assert isinstance(size, Const)
    return int(size.value)


def _end(end: Expr, size: Expr, is_natural: Callable[[Expr], bool]) -> Expr:
    """Return an end of a slice; a negative one counts from the end of the dimension."""
    zero = Const(0, INT)
    if isinstance(end, Const):
        return end if end.value >= 0 else operate("max", size + end, zero)
    if is_natural(end):
        return end
    from_end = operate("max", end + size, zero)
    return Op("select", (end < zero, from_end, end), INT)


def reads(value: Expr, buffer: str) -> list[Load]:
    """Return the accesses of an expression to a tensor."""
    return [e for e in walk(value) if isinstance(e, Load) and e.buffer == buffer]
