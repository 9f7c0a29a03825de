"""Translate parts of tensors into rows: ``x[i]``, ``x[1:-1]``, ``x``, and a name that was given to one."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import NoReturn

from ...core.errors import ArgumentValueError
from ..ir.grammar import BOOL, INT, Buffer, Const, Demand, Expr, Op, Size, Var, walk
from ..ir.operate import operate
from ..ir.printing import expression
from ..ir.types import Refusal
from .access import Access, count, load
from .rows import Index, Row, Value, View, at_most_one, difference, is_narrow_step, lifted, of_one_place, part


class RowAccess(Access):
    """The accesses of one function to rows."""

    def whole(self, buffer: Buffer, line: int) -> Row:
        """Return all of a tensor as a row; ``line`` is that of the access, for messages."""

        def element(index: Index) -> Expr:
            return load(buffer, tuple(index), line)

        return Row(buffer.shape, element, View(buffer.name, tuple))

    def base(self, node: ast.expr) -> tuple[Row, list[ast.expr]] | None:
        """Return the tensor or row that ``a[i][j:k]`` is a part of, and the parts; None for another value.

        What follows a slice counts the dimensions that the slice leaves: ``a[1:3][0]`` is ``a[1]``.
        """
        parts: list[ast.expr] = []
        while isinstance(node, ast.Subscript):
            own = _parts(node)
            if parts and any(isinstance(one, ast.Slice) for one in own):
                return None if self.base(node) is None else (self.place(node), parts)
            parts = [*own, *parts]
            node = node.value
        unique = self.scopes.names.get(node) if isinstance(node, ast.Name) else None
        if unique in self.rows:
            return self.rows[unique], parts
        return (self.whole(self.buffers[unique], node.lineno), parts) if unique in self.buffers else None

    def is_row(self, node: ast.Subscript) -> bool:
        """Whether a subscript means several elements, or an element of a named row."""
        found = self.base(node)
        if found is None:
            return False
        row, parts = found
        sliced = any(isinstance(one, ast.Slice) for one in parts)
        several = any(self.tuple_of(one) is not None for one in parts if not isinstance(one, ast.Slice))
        return (
            self._is_named(node)
            or _is_of_slice(node.value)
            or sliced
            or (len(parts) < len(row.sizes) and not several)
        )

    def _is_named(self, node: ast.expr) -> bool:
        while isinstance(node, ast.Subscript):
            node = node.value
        return isinstance(node, ast.Name) and self.scopes.names.get(node) in self.rows

    def part(self, node: ast.Subscript) -> Value:
        """Return the row, or the element of a row, that a subscript means."""
        row = self.place(node)
        return row if row.sizes else row.element(())

    def place(self, node: ast.Subscript) -> Row:
        """Return the row that a subscript means; it has no sizes where it is one element."""
        found = self.base(node)
        assert found is not None
        row, parts = found
        if len(parts) > len(row.sizes):
            rule = f"{ast.unparse(node)} has more indices than there are dimensions"
            seen = f"{len(parts)} for {count(row.sizes, 'dimension')}"
            self.fail(rule, node, seen, "write one index or : for each dimension", ArgumentValueError)
        sizes: list[Expr] = []
        places: list[Callable[[Index], Expr]] = []
        for axis, size in enumerate(row.sizes):
            text = parts[axis] if axis < len(parts) else ast.Slice()
            if not isinstance(text, ast.Slice):
                places.append(self._fixed(self._position(text, axis, size, node)))
                continue
            start, length, step = self._slice(text, size, node)
            places.append(_place(len(sizes), start, step))
            sizes.append(length)

        def index_of(index: Index) -> tuple[Expr, ...]:
            return tuple(place(index) for place in places)

        view = None
        if (under := row.view) is not None:
            view = View(under.buffer, lambda index: under.index(index_of(index)))
        return Row(tuple(sizes), lambda index: row.element(index_of(index)), view)

    def _fixed(self, position: Expr) -> Callable[[Index], Expr]:
        return lambda index: position

    def _position(self, text: ast.expr, axis: int, size: Expr, node: ast.Subscript) -> Expr:
        position = self.integer(self.expression(text), f"index {axis} of {ast.unparse(node)}", text, node)
        negative = isinstance(position, Const) and position.value < 0
        return size + position if negative else position

    def _slice(self, text: ast.Slice, size: Expr, node: ast.Subscript) -> tuple[Expr, Expr, int]:
        def end(one: ast.expr | None) -> Expr | None:
            return None if one is None else self.integer(self.expression(one), "an end of a slice", one, node)

        try:
            start, stop, step = end(text.lower), end(text.upper), end(text.step)
            stride = 1 if step is None else step.value if isinstance(step, Const) else 0
            one_place = start is not None and of_one_place(size, start, stop, int(stride))
            if one_place and start is not None and self.is_inside(start, size):
                return start, Const(1, INT), 1
            found = part(size, (start, stop, step), self.is_natural)
        except Refusal as refusal:
            self.fail(refusal.rule, node, ast.unparse(node), refusal.hint)
        if start is not None and stop is not None and step is None and is_narrow_step(start, stop):
            self.narrow.add(found[1])
        return found

    def is_natural(self, value: Expr) -> bool:
        """Whether a number cannot be negative: a size, a loop variable from 0 or more on, a sum of these."""
        match value:
            case Const(value=number):
                return number >= 0
            case Size():
                return True
            case Var(name=name):
                return name in self.natural
            case Op(name="+" | "*" | "min" | "max" | "//", args=args):
                return all(map(self.is_natural, args))
        return False

    def is_inside(self, place: Expr, size: Expr) -> bool:
        """Whether a place is in a dimension of this size: a loop variable, or a fixed distance from one."""
        for variable, least, end in self.ranges:
            apart = difference(place, variable)
            if apart is not None:
                lowest, past = (one + Const(apart, INT) for one in (least, end))
                if self.is_natural(lowest) and _is_within(past, size):
                    return True
        return False

    def lift(self, node: ast.expr, function: Callable[..., Expr], *operands: Value) -> Value:
        """Return the function of numbers and rows."""
        return lifted(function, *operands, common=lambda one, other: self.equal(node, one, other))

    def equal(self, node: ast.AST, one: Expr, other: Expr) -> Expr:
        """Return the size of two rows that are combined; raise if no call can combine them.

        One that is at most 1 is broadcast to the other. Of two such ones none is: the row is empty if one is.
        """
        units = (at_most_one(one), at_most_one(other))
        if all(units):
            return operate("min", one, other)
        if any(units):
            return self.stretched(node, *((one, other) if units[0] else (other, one)))
        return self.same(node, one, other)

    def stretched(self, node: ast.AST, unit: Expr, size: Expr) -> Expr:
        """Return the size of a row to which a slice of one place is broadcast.

        The slice is empty where its place is outside. Each call checks that before it runs; where the place
        depends on a loop it must be proved inside, by the loop's range.
        """
        if not self.is_symbolic(unit):
            self._fail_of_unit(node)
        sizes = [Const(1, INT), *([size] if self.is_symbolic(size) else [])]
        equal = [_compared("==", unit, one) for one in sizes]
        condition = equal[0] if len(equal) == 1 else Op("or", tuple(equal), BOOL)
        self._demand(node, unit, condition, " or ".join(map(expression, sizes)))
        return size

    def _fail_of_unit(self, node: ast.AST) -> NoReturn:
        rule = f"rows of different sizes are combined: {ast.unparse(node)}"
        way = "loop over range(x.shape[0]), for x[i : i + 1]; or write the element: x[i]"
        seen = "a slice of one place that may be outside of its tensor"
        self.fail(f"{rule}, and only a size that is 1 for certain is broadcast", node, seen, way)

    def same(self, node: ast.AST, one: Expr, other: Expr) -> Expr:
        """Return the size of two rows whose sizes must be equal; raise if they never are.

        Sizes that each call has before it runs are compared there, others before the loops of the row.
        """
        apart = difference(one, other)
        sizes = [str(size.value) for size in (one, other) if isinstance(size, Const)]
        if apart is not None:
            rule = f"rows of different sizes are combined: {ast.unparse(node)}"
            seen = " and ".join(sizes) if len(sizes) == 2 else f"sizes that differ by {apart}"
            self.fail(rule, node, seen, kind=ArgumentValueError)
        if not (self.is_symbolic(one) and self.is_symbolic(other)):
            narrow = [size in self.narrow for size in (one, other)]
            if any(narrow) and not all(narrow) and not any(map(at_most_one, (one, other))):
                self._fail_of_unit(node)
            self.unequal.append(_compared("!=", one, other))
            return one
        self._demand(node, one, _compared("==", one, other), expression(other))
        return one

    def _demand(self, node: ast.AST, size: Expr, condition: Expr, wanted: str) -> None:
        rule = f"rows of different sizes are combined: {ast.unparse(node)}"
        text = f"line {getattr(node, 'lineno', 0)}: {rule}, where {expression(size)} must be {wanted}"
        self.demands.setdefault((size, condition), Demand(condition, text))

    def is_symbolic(self, size: Expr) -> bool:
        """Whether a size is computed from sizes of parameters, attributes and constants."""
        return all(
            isinstance(e, (Const, Size, Op)) or (isinstance(e, Var) and e.name in self.attributes)
            for e in walk(size)
        )

    def fitting(self, node: ast.AST, value: Row, sizes: Sequence[Expr]) -> tuple[Expr, ...]:
        """Return the sizes of the loops that store a row into a place of other sizes."""
        if len(value.sizes) > len(sizes):
            rule = f"a row of {count(value.sizes, 'dimension')} does not fit"
            self.fail(rule, node, f"a place of {count(sizes, 'dimension')}", kind=ArgumentValueError)
        missing = len(sizes) - len(value.sizes)
        pairs = zip(sizes[missing:], value.sizes, strict=True)
        return (*sizes[:missing], *(self._fitting(node, place, size) for place, size in pairs))

    def _fitting(self, node: ast.AST, place: Expr, size: Expr) -> Expr:
        if size == Const(1, INT) or difference(place, size) == 0:
            return place
        if at_most_one(size) and (self.is_symbolic(size) or not at_most_one(place)):
            return self.stretched(node, size, place)
        return self.same(node, place, size)


def _parts(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _is_of_slice(node: ast.expr) -> bool:
    """Whether an expression has subscripts, and one of them a slice."""
    if not isinstance(node, ast.Subscript):
        return False
    return any(isinstance(one, ast.Slice) for one in _parts(node)) or _is_of_slice(node.value)


def _compared(operator: str, one: Expr, other: Expr) -> Expr:
    """Return whether two sizes are equal, or not; one below 0 is that of a row of no elements."""
    none = Const(0, INT)
    return operate(operator, operate("max", one, none), operate("max", other, none))


def _is_within(end: Expr, size: Expr) -> bool:
    """Whether an end is at most a size, whatever the call."""
    if isinstance(end, Op) and end.name == "min":
        return any(_is_within(one, size) for one in end.args)
    apart = difference(end, size)
    return apart is not None and apart <= 0


def _place(position: int, start: Expr, step: int) -> Callable[[Index], Expr]:
    def place(index: Index) -> Expr:
        scaled = index[position] if abs(step) == 1 else index[position] * Const(step, INT)
        if start == Const(0, INT):
            return scaled
        return operate("+" if step > 0 else "-", start, scaled)

    return place
