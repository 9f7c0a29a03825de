"""Translate statements about rows into loops: ``y[i] = a * x[i]``, ``r = x[i] + 1``, ``sum(x[i])``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from ...core.errors import ArgumentValueError
from ..ir.failing import EMPTY_ROW, OTHER_SIZE, RULES, failing_index, failing_load
from ..ir.grammar import (
    FLOAT,
    INT,
    Assign,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Load,
    Stmt,
    Store,
    Type,
    Var,
    walk,
)
from ..ir.held import holding, stored_as
from ..ir.operate import operate
from ..ir.reductions import reduction
from ..ir.rewriter import rewrite
from ..ir.types import cast, converted, kind
from ..ir.uses import tensors_of
from .expressions import Expressions
from .loop_heads import Loops
from .rows import Index, Row, Value, View, at, is_empty, reads

FILLED = {"+": 0, "*": 1}
"""The values from which sums and products start."""


class RowStatements(Loops):
    """Translates the statements of one function that are about rows."""

    def __init__(self, state: Expressions) -> None:
        super().__init__(state)
        state.reduce = self.reduce

    def store_row(
        self, node: ast.stmt, target: Row, value: Value, op: Callable[..., Expr] | None
    ) -> list[Stmt]:
        """Return the loops of ``target = value``, or of ``target op= value``."""
        state = self.state
        if target.view is None:
            rule = "only rows of tensors are assigned, and this one was computed"
            state.fail(rule, node, hint="declare it with allocate(shape, dtype)")
        view = target.view
        if state.buffers[view.buffer].role == "input":
            rule = f"the input tensor is written but not in the return value: {view.buffer}"
            state.fail(rule, node, hint=f"return {view.buffer} too, as an output written in place")
        sizes = target.sizes
        before, target, view = self.place_read_once(node, target, view)
        if isinstance(value, Row):
            sizes = state.fitting(node, value, sizes)
            if _overlaps(value, target, view):
                copy, value = self.materialised(node, self.new("copied"), value)
                before += copy
        elif view.buffer in tensors_of(value):
            before.append(Assign(name := self.new("value"), value, line=node.lineno))
            value = Var(name, value.type)
        to = Type(state.buffers[view.buffer].dtype)

        def body(index: Index) -> Stmt:
            new = at(value, index)
            if op is not None:
                new = op(target.element(index), new)
            store = Store(view.buffer, view.index(index), converted(new, to), line=node.lineno)
            return reduction(store, to)

        return [*before, *self.over(sizes, "k", body, node)]

    def place_read_once(self, node: ast.stmt, target: Row, view: View) -> tuple[list[Stmt], Row, View]:
        """Return assignments of what the place of a row reads from its own tensor, and the row with these.

        ``y[y[0], :] = x`` stores a whole row where y[0] said before, also if it stores y[0] on the way.
        """
        leaves = _leaves(target, view)
        loads = [e for e in leaves if isinstance(e, Load) and e.buffer == view.buffer]
        return self.held(node, target, view, loads) if loads else ([], target, view)

    def held(
        self, node: ast.stmt, row: Row, view: View, parts: Sequence[Expr]
    ) -> tuple[list[Stmt], Row, View]:
        """Return assignments that keep parts of a view's index in new scalars, and the row with these."""
        kept = {part: Var(self.new("place"), part.type) for part in dict.fromkeys(parts)}

        def known(expr: Expr) -> Expr:
            return kept.get(expr, expr)

        fixed = View(view.buffer, lambda index: tuple(rewrite(i, known) for i in view.index(index)))
        held = Row(row.sizes, lambda index: rewrite(row.element(index), known), fixed)
        return [Assign(to.name, part, line=node.lineno) for part, to in kept.items()], held, fixed

    def over(
        self, sizes: Sequence[Expr], name: str, body: Callable[[Index], Stmt], node: ast.AST
    ) -> list[Stmt]:
        """Return the loops over all places of a row, after the checks of the rows that are combined."""
        line = getattr(node, "lineno", 0)
        loops = [Var(self.new(name), INT) for _ in sizes]
        stmt = body(loops)
        unequal, self.state.unequal = self.state.unequal, []
        first = body([Const(0, INT)] * len(sizes)) if unequal else stmt
        checks = [If(wrong, (self.failing(first, OTHER_SIZE, node),), line=line) for wrong in unequal]
        for loop, size in reversed(list(zip(loops, sizes, strict=True))):
            stmt = For(loop.name, Const(0, INT), size, (stmt,), line)
        return [*checks, stmt]

    def failing(self, stmt: Stmt, rule: int, node: ast.AST) -> Stmt:
        """Return a statement that raises a rule in place of a store, or of an assignment to a scalar."""
        match stmt:
            case Store(buffer=buffer, index=index, value=value, line=line):
                return Store(buffer, failing_index(rule, len(index)), value, line=line)
            case Assign(name=name, value=value, line=line):
                read = failing_load(rule, [value], self.state.buffers, value.type, line)
                if read is not None:
                    return Assign(name, read, line=line)
        return self.state.fail(RULES[rule], node, hint="write a loop over the elements")

    def name_row(self, target: ast.Name, value: Row, node: ast.stmt) -> list[Stmt]:
        """Return the statements of ``name = row``: none for a part of a tensor, a view as in NumPy."""
        unique = self.names[target]
        if unique in self.state.rows or unique in self.state.variables:
            hint = "use another name, or write into it: name[:] = ..."
            self.state.fail(f"{target.id} is a row, and is assigned once", node, hint=hint)
        if value.view is not None:
            before, self.state.rows[unique] = self.fixed_place(node, value, value.view)
            return before
        statements, self.state.rows[unique] = self.materialised(node, unique, value)
        return statements

    def fixed_place(self, node: ast.stmt, value: Row, view: View) -> tuple[list[Stmt], Row]:
        """Return assignments that keep the scalars in a view's index, and the view with these."""
        leaves = _leaves(value, view)
        for leaf in leaves:
            if isinstance(leaf, Load) and self.state.buffers[leaf.buffer].role != "input":
                rule = f"the place of this row is read from {leaf.buffer}, which the kernel writes"
                self.state.fail(rule, node, hint="assign the index to a scalar before, and use that")
        kinds = self.state.scopes.kinds
        names = [e for e in leaves if isinstance(e, Var) and kinds.get(e.name) == "scalar"]
        before, row, _ = self.held(node, value, view, names)
        return before, row

    def materialised(self, node: ast.stmt, name: str, value: Row) -> tuple[list[Stmt], Row]:
        """Return the statements that compute a row into a temporary of that name, and the temporary."""
        state = self.state
        if not all(map(state.is_symbolic, value.sizes)):
            rule = "the size of this row differs between iterations, so it has no memory of its own"
            state.fail(rule, node, hint="write a loop over the elements", kind=ArgumentValueError)
        of = stored_as(value.first.type)
        none = Const(0, INT)
        sizes = tuple(s if state.is_natural(s) else operate("max", s, none) for s in value.sizes)
        buffer = Buffer(name, of.dtype, sizes, "local", node.lineno)
        state.buffers[buffer.name] = buffer

        def body(index: Index) -> Stmt:
            element = converted(value.element(index), Type(of.dtype))
            return Store(buffer.name, tuple(index), element, line=node.lineno)

        return self.over(value.sizes, "k", body, node), state.whole(buffer, node.lineno)

    def table(self, target: ast.Name, items: Sequence[Expr], node: ast.stmt) -> list[Stmt]:
        """Return the statements of ``w = [1.0, 2.0, 1.0]``: a temporary, and a store for each item."""
        of = stored_as(holding(items))
        size = Const(len(items), INT)
        unique = self.names[target]
        buffer = Buffer(unique, of.dtype, (size,), "local", node.lineno)
        self.state.buffers[unique] = buffer
        self.state.rows[unique] = self.state.whole(buffer, node.lineno)
        return [
            Store(buffer.name, (Const(k, INT),), cast(item, Type(of.dtype)), line=node.lineno)
            for k, item in enumerate(items)
        ]

    def reduce(self, node: ast.expr, operator: str, row: Row) -> Expr:
        """Return a variable to which ``state.before`` assigns the combined elements of a row."""
        state = self.state
        of = row.first.type
        to = _summed(of) if operator in FILLED else of
        name = self.new({"+": "total", "*": "product", "max": "greatest", "min": "least"}[operator])
        state.variables[name] = to
        if operator in FILLED:
            start: Expr = cast(Const(FILLED[operator], INT), to)
        else:
            start = row.first
        start = start if start.type == to else cast(start, to)
        line = node.lineno
        state.before.append(Assign(name, start, line=line))
        if operator not in FILLED:
            first = Assign(name, start, line=line)
            state.before += self.nonempty(node, first, row)

        def body(index: Index) -> Stmt:
            value = operate(operator, Var(name, to), cast(row.element(index), to))
            return reduction(Assign(name, converted(value, to), line=line), to)

        state.before += self.over(row.sizes, "k", body, node)
        return Var(name, to)

    def nonempty(self, node: ast.expr, first: Assign, row: Row) -> list[Stmt]:
        """Return what fails where a row has no element."""
        checks: list[Stmt] = []
        for size in row.sizes:
            empty = is_empty(size)
            if empty:
                rule = f"{ast.unparse(node)} is of a row without elements"
                self.state.fail(rule, node, kind=ArgumentValueError)
            if empty is None:
                condition = size <= 0
                checks.append(If(condition, (self.failing(first, EMPTY_ROW, node),), line=first.line))
        return checks


def _summed(of: Type) -> Type:
    """Return the dtype in which NumPy adds: 64 bits for integers and bools."""
    if of == FLOAT or kind(of) in "fc":
        return of
    return Type("uint64" if kind(of) == "u" else "int64")


def _leaves(row: Row, view: View) -> list[Expr]:
    """Return the parts of the index at which a row lies."""
    return [e for i in view.index([Const(0, INT)] * len(row.sizes)) for e in walk(i)]


def _overlaps(value: Row, target: Row, view: View) -> bool:
    """Whether a row reads elements of the target's tensor other than the one that is being stored."""
    index = [Var(f"?{k}", INT) for k in range(len(target.sizes))]
    place = view.index(index)
    return any(load.index != place for load in reads(at(value, index), view.buffer))
