"""Translate parts of tensors into rows: ``x[i]``, ``x[1:-1]``, ``x``, and a name that was given to one."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from ...core.errors import ArgumentValueError
from ..ir.grammar import INT, Buffer, Const, Demand, Expr, Op, Size, Var, walk
from ..ir.operate import operate
from ..ir.printing import expression
from ..ir.types import Refusal
from .access import Access, count, load
from .rows import Index, Row, Value, View, broadcast, difference, lifted, part


class RowAccess(Access):
    """The accesses of one function to rows."""

    def whole(self, buffer: Buffer, line: int) -> Row:
        """Return all of a tensor as a row; ``line`` is that of the access, for messages."""

        def element(index: Index) -> Expr:
            return load(buffer, tuple(index), line)

        return Row(buffer.shape, element, View(buffer.name, tuple))

    def base(self, node: ast.expr) -> tuple[Row, list[ast.expr]] | None:
        """Return the tensor or row that ``a[i][j:k]`` is a part of, and the parts; None for another value."""
        parts: list[ast.expr] = []
        while isinstance(node, ast.Subscript):
            parts = [*(node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]), *parts]
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
        return self._is_named(node) or sliced or (len(parts) < len(row.sizes) and not several)

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
        return operate("+", size, position) if negative else position

    def _slice(self, text: ast.Slice, size: Expr, node: ast.Subscript) -> tuple[Expr, Expr, int]:
        def end(one: ast.expr | None) -> Expr | None:
            return None if one is None else self.integer(self.expression(one), "an end of a slice", one, node)

        try:
            return part(size, (end(text.lower), end(text.upper), end(text.step)), self.is_natural)
        except Refusal as refusal:
            self.fail(refusal.rule, node, ast.unparse(node), refusal.hint)

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

    def lift(self, node: ast.expr, function: Callable[..., Expr], *operands: Value) -> Value:
        """Return the function of numbers and rows."""
        return lifted(function, *operands, common=lambda one, other: self.equal(node, one, other))

    def equal(self, node: ast.AST, one: Expr, other: Expr) -> Expr:
        """Return the size of two rows that are combined; raise if their sizes are never equal.

        Sizes that each call has before it runs are compared there. Others give the greater one: then the loop
        leaves the smaller row, and the index is an error.
        """
        apart = difference(one, other)
        sizes = [str(size.value) for size in (one, other) if isinstance(size, Const)]
        rule = f"rows of different sizes are combined: {ast.unparse(node)}"
        if apart is not None:
            seen = " and ".join(sizes) if len(sizes) == 2 else f"sizes that differ by {apart}"
            self.fail(rule, node, seen, kind=ArgumentValueError)
        if not (self.is_symbolic(one) and self.is_symbolic(other)):
            return operate("max", one, other)
        none = Const(0, INT)
        condition = operate("==", operate("max", one, none), operate("max", other, none))
        line = getattr(node, "lineno", 0)
        text = f"line {line}: {rule}, where {expression(one)} must be {expression(other)}"
        self.demands.setdefault((one, other), Demand(condition, text))
        return one

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
        for one, other in zip(reversed(sizes), reversed(value.sizes), strict=False):
            if one == Const(1, INT) and difference(one, other) != 0:
                self.equal(node, one, other)
        return broadcast([tuple(sizes), value.sizes], lambda one, other: self.equal(node, one, other))


def _place(position: int, start: Expr, step: int) -> Callable[[Index], Expr]:
    def place(index: Index) -> Expr:
        scaled = index[position] if abs(step) == 1 else operate("*", index[position], Const(step, INT))
        if start == Const(0, INT):
            return scaled
        return operate("+" if step > 0 else "-", start, scaled)

    return place
