"""Translate the syntax of statements into typed statements of the IR."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Sequence

from ...core.errors import ArgumentValueError
from ..ir.failing import OTHER_NUMBER
from ..ir.grammar import (
    BOOL,
    INT,
    Assign,
    Buffer,
    Const,
    Demand,
    Expr,
    For,
    If,
    Op,
    Stmt,
    Store,
    Type,
    Var,
)
from ..ir.held import holding
from ..ir.reductions import reduction
from ..ir.types import Refusal, cast, converted
from ..ir.uses import variables_of
from .access import count
from .desugar.constant_arrays import Numbers
from .desugar.makers import OF_ZEROS
from .desugar.nodes import Undefined
from .language import BUFFERS
from .loop_heads import size_text
from .powers import conditions, without_checks
from .row_statements import RowStatements
from .rows import Row
from .suggestions import suggestion_for_rank


class Statements(RowStatements):
    """Translates statements of one function."""

    def block(self, body: list[ast.stmt]) -> tuple[Stmt, ...]:
        """Return the statements of a body."""
        return tuple(stmt for node in body for stmt in self.statement(node))

    def statement(self, node: ast.stmt) -> list[Stmt]:
        """Return the statements of the IR for one of Python: none for a declaration. Errors name the line."""
        state = self.state
        outside, state.before, state.unequal = (state.before, state.unequal), [], []
        try:
            statements = self._statement(node)
        except Refusal as refusal:
            state.fail(refusal.rule, node, refusal.seen, refusal.hint)
        else:
            return [*state.before, *statements]
        finally:
            state.before, state.unequal = outside

    def _statement(self, node: ast.stmt) -> list[Stmt]:
        match node:
            case ast.Assign(targets=[target], value=value):
                return self.assign(target, value, node)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                return self.assign(target, value, node)
            case ast.AugAssign(target=target, value=value, op=op):
                return self.update(target, value, op, node)
            case ast.If(test=test, body=body, orelse=orelse):
                condition = self.state.condition(test)
                if isinstance(
                    condition, Const
                ):  # a choice by dtype or rank: the other branch is not compiled
                    return list(self.block(body if condition.value else orelse))
                return [If(condition, self.block(body), self.block(orelse), node.lineno)]
            case ast.For():
                return self.loop(node)
            case ast.With(body=body):
                return list(self.block(body))
        return []  # return, pass, a docstring

    def update(self, target: ast.expr, value: ast.expr, op: ast.operator, node: ast.stmt) -> list[Stmt]:
        """Return the statements of ``target op= value``."""
        row = self.target_row(target)
        if row is not None:
            return self.store_row(node, row, self.state.value(value), self.state.binary(op, node))
        updated = self.state.binary(op, node)(self.state.expression(target), self.state.expression(value))
        return self.store(target, updated, node)

    def numbers(self, target: ast.expr, value: Numbers, node: ast.stmt) -> list[Stmt]:
        """Return a store for each number of a table from outside."""
        assert isinstance(target, ast.Subscript)
        assert isinstance(target.value, ast.Name)
        buffer = self.state.buffers[self.names[target.value]]
        items = [self.state.expression(item) for item in value.elts]
        places = itertools.product(*(range(int(size.value)) for size in buffer.shape))  # type: ignore[union-attr]
        return [
            Store(
                buffer.name,
                tuple(Const(k, INT) for k in place),
                cast(item, Type(buffer.dtype)),
                line=node.lineno,
            )
            for place, item in zip(places, items, strict=True)
        ]

    def target_row(self, target: ast.expr) -> Row | None:
        """Return the row that a target is, also one of a single element of a named row; None for another."""
        state = self.state
        if isinstance(target, ast.Name):
            return state.rows.get(self.names[target])
        if not isinstance(target, ast.Subscript) or not state.is_row(target):
            return None
        return state.place(target)

    def assign(self, target: ast.expr, value: ast.expr, node: ast.stmt) -> list[Stmt]:
        """Return the statements of an assignment; a tensor or the name of a shape may need none."""
        state = self.state
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in BUFFERS:
            assert isinstance(target, ast.Name)
            return self.declare(self.names[target], value, node)
        if isinstance(value, Numbers):
            return self.numbers(target, value, node)
        if isinstance(value, Undefined):
            assert isinstance(target, ast.Name)
            to = state.variables.get(self.names[target])  # unknown until its other assignments have been seen
            return (
                [] if to is None else [self.assignment(self.names[target], cast(Const(0, INT), to), to, node)]
            )
        row = self.target_row(target) if isinstance(target, ast.Subscript) else None
        if row is not None:
            return self.store_row(node, row, state.value(value), None)
        items = None if isinstance(target, ast.Subscript) else state.tuple_of(value)
        if items and isinstance(target, ast.Name) and isinstance(value, ast.List):
            return self.table(target, items, node)
        if items is None:
            result = state.value(value)
            if isinstance(target, (ast.Tuple, ast.List)):
                parts, wrong = state.unpacked(result, len(target.elts), value, node)
                return self.unpack(target.elts, parts, wrong, node)
            if isinstance(result, Row) and isinstance(target, ast.Name):
                return self.name_row(target, result, node)
            return self.store(target, state.scalar(result, value), node)
        if isinstance(target, (ast.Tuple, ast.List)):
            if len(target.elts) != len(items):
                rule = f"{ast.unparse(value)} has {count(items, 'element')}"
                hint = suggestion_for_rank(value, len(items), len(target.elts))
                hint = hint if len(target.elts) > len(items) else None
                state.fail(rule, node, count(target.elts, "name"), hint, ArgumentValueError)
            pairs = zip(target.elts, items, strict=True)
            return [stmt for name, size in pairs for stmt in self.store(name, size, node)]
        if not isinstance(target, ast.Name) or self.names[target] not in state.scopes.once:
            hint = "assign it once, at the top of the function"
            state.fail("a tuple can only be assigned to a name", node, ast.unparse(value), hint)
        state.tuples[self.names[target]] = tuple(
            self.symbolic(size, node, size_text(value, k)) for k, size in enumerate(items)
        )
        return []

    def unpack(
        self, names: Sequence[ast.expr], items: Sequence[Expr], wrong: Expr | None, node: ast.stmt
    ) -> list[Stmt]:
        """Return the assignments of the elements of a row to names, after a check of their number.

        Where an element reads a name, or there is a check, all are kept before the first assignment.
        """
        kinds, before = self.state.scopes.kinds, list[Stmt]()
        read = variables_of(*items)
        if wrong is not None or any(kinds.get(name) == "scalar" for name in read):
            kept = [Var(self.new("item"), one.type) for one in items]
            own = [Assign(to.name, one, line=node.lineno) for to, one in zip(kept, items, strict=True)]
            checks = (
                [If(wrong, (self.failing(own[0], OTHER_NUMBER, node),), line=node.lineno)] if wrong else []
            )
            before, items = [*own, *checks], kept
        pairs = zip(names, items, strict=True)
        return [*before, *(stmt for name, item in pairs for stmt in self.store(name, item, node))]

    def store(self, target: ast.expr, value: Expr, node: ast.stmt) -> list[Stmt]:
        """Return ``target = value``; a scalar that only names a size or a constant is replaced by it."""
        state = self.state
        if isinstance(target, ast.Subscript):
            buffer, index = state.buffer_and_index(target)
            to = Type(buffer.dtype)
            store = Store(buffer.name, index, converted(value, to), line=node.lineno)
            return [reduction(store, to)]
        assert isinstance(target, ast.Name)
        unique = self.names[target]
        cheap = isinstance(value, Const) or value.type == INT  # a float is computed once, before the loops
        if unique in state.scopes.once and cheap and state.is_symbolic(without_checks(value)):
            state.bindings[unique] = value
            return []
        return [self.assigned(target, value, node)]

    def assigned(self, target: ast.Name, value: Expr, node: ast.stmt) -> Stmt:
        """Return the assignment of a scalar, whose type holds the values of all of its assignments."""
        unique = self.names[target]
        values = self.values.setdefault(unique, [])
        before = values[-1].type if values else value.type
        values.append(value)
        if before != value.type and BOOL in (before, value.type):
            rule = f"{target.id} is a bool in one assignment and a number in another"
            self.state.fail(rule, node, f"{before} and {value.type}", "use two names")
        self.types[unique] = holding(values)
        if unique not in self.known:
            self.state.variables[unique] = self.types[unique]
        return self.assignment(unique, value, self.state.variables[unique], node)

    def assignment(self, unique: str, value: Expr, to: Type, node: ast.stmt) -> Stmt:
        """Return the assignment of a scalar of a type."""
        return reduction(Assign(unique, _retyped(value, to), line=node.lineno), to)

    def declare(self, name: str, call: ast.Call, node: ast.stmt) -> list[Stmt]:
        """Add the tensor of ``output_tensor`` or ``allocate``.

        Return nothing, or, for a tensor declared inside a loop, a loop that fills it with zeros.
        """
        state = self.state
        assert isinstance(call.func, ast.Name)
        sizes = state.tuple_of(call.args[0])
        if sizes is None:
            sizes = (state.expression(call.args[0]),)  # of one dimension, as in NumPy
        shape = tuple(self.symbolic(size, node, size_text(call.args[0], k)) for k, size in enumerate(sizes))
        role = "output" if call.func.id == "output_tensor" else "local"
        zeros = getattr(call, "made", "") in OF_ZEROS
        dtype = state.dtype(call.args[1])
        buffer = Buffer(name, dtype, shape, role, node.lineno, zeroed=True, of_zeros=zeros)
        state.buffers[name] = buffer
        if name not in state.scopes.inner:
            return []
        loops = [Var(self.new(f"{name}_{k}"), INT) for k in range(len(shape))]
        zero = cast(Const(0, INT), Type(buffer.dtype))
        fill: Stmt = Store(name, tuple(loops), zero, line=node.lineno)
        for loop, size in reversed(list(zip(loops, shape, strict=True))):
            fill = For(loop.name, Const(0, INT), size, (fill,), node.lineno)
        return [fill]

    def symbolic(self, size: Expr, node: ast.stmt, text: ast.expr | None) -> Expr:
        """Return a size as an int64; raise unless it is computed from shapes, attributes and constants."""
        size = self.state.integer(size, "a size", text, node)
        checks, size = list(conditions(size)), without_checks(size)
        if not self.state.is_symbolic(size):
            rule = "a shape is computed from shapes of parameters, attributes and constants"
            hint = "a scalar in it must be assigned once, outside loops; it cannot read elements of tensors"
            self.state.fail(rule, node, hint=hint, kind=ArgumentValueError)
        if isinstance(size, Const) and size.value < 0:
            self.state.fail("a size cannot be negative", node, size.value, kind=ArgumentValueError)
        rule = f"line {node.lineno}: an integer to a negative power is no integer"
        self.state.demands.update(((check, size), Demand(check, rule)) for check in checks)
        return size


def _retyped(value: Expr, to: Type) -> Expr:
    """Return the value in the variable's type; if only the weakness differs, a cast removes it or adds it."""
    if value.type == to and not isinstance(value, Const):
        return value
    if value.type.dtype != to.dtype or isinstance(value, Const):
        return cast(value, to)
    return Op("cast", (value,), to)
