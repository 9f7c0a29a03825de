"""Scalar expansion: a scalar that a loop computes for sums inside it becomes an element of a buffer.

    for j in range(n):                         for j in range(n):
        t = g[j] / c                               t = g[j] / c
        for d in range(m):                ->       t_row[j] = t
            a[d] += t * k[j, d]                for j in range(n):
            b[j, d] += t * q[d]                    for d in range(m):
                                                       a[d] += t_row[j] * k[j, d]
                                                       b[j, d] += t_row[j] * q[d]

Then the sums are products of elements, and each can have its own loops. It is a step of block_distribution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ..analysis.ranges import length, span
from ..analysis.strides import depends
from ..ir.grammar import (
    INT,
    Assign,
    Buffer,
    Expr,
    For,
    Kernel,
    Load,
    Stmt,
    Store,
    Type,
    Var,
    names_of,
    statements,
    unused,
)
from ..ir.note import Note
from ..ir.rewriter import rewrite
from ..ir.types import NARROW
from ..ir.uses import variables_of
from ..program import Program
from .strip_mine import with_loop_replaced

Moved = TypeVar("Moved", Stmt, Expr)


@dataclass
class Rows:
    """Rows for scalars of a loop: each has a place for each iteration, within the ``ends`` of the loop.

    ``buffers`` are the rows, by scalar. ``new`` makes names that nothing else has.
    """

    loop: For
    ends: tuple[Expr, Expr]
    new: Callable[[str], str]
    buffers: dict[str, Buffer] = field(default_factory=dict)

    def add(self, scalar: str, type_: Type, line: int, name: str = "") -> None:
        """Give a scalar a row."""
        name = self.new(name or f"{scalar}_row")
        self.buffers[scalar] = Buffer(name, type_.dtype, (length(*self.ends),), "local", line)

    def place(self, scalar: str, at: Expr) -> Load:
        """Return the place of a scalar for an iteration."""
        row = self.buffers[scalar]
        return Load(row.name, (at - self.ends[0],), Type(row.dtype), row.line)

    def filled(self) -> list[Stmt]:
        """Return the stores of the scalars in an iteration of the loop."""
        places = [(scalar, self.place(scalar, Var(self.loop.var, INT))) for scalar in self.buffers]
        return [Store(p.buffer, p.index, Var(scalar, p.type), "", p.line) for scalar, p in places]

    def moved(self, node: Moved, at: Expr) -> Moved:
        """Return a statement or an expression of an iteration, for a loop in which that is ``at``."""

        def change(e: Expr) -> Expr:
            if isinstance(e, Var) and e.name in self.buffers:
                return self.place(e.name, at)
            return at if isinstance(e, Var) and e.name == self.loop.var else e

        result: Moved = rewrite(node, change)
        return result


def with_rows_of_scalars(program: Program, path: tuple[For, ...]) -> Program:
    """Return the program with such loops directly inside the last loop of ``path`` in two."""
    for inner in path[-1].body:
        if isinstance(inner, For) and not inner.hint and inner.var not in program.kept_loops():
            program = _in_two(program, path, inner)
    return program


def _in_two(program: Program, path: tuple[For, ...], loop: For) -> Program:
    """Return the program with a loop in two, if each scalar between them can have a place."""
    first = [s for s in loop.body if isinstance(s, Assign)]
    scalars = _read_inside(program.kernel, first, loop.body[len(first) :])
    if not scalars:
        return program
    listed = ", ".join(sorted(s.name for s in scalars))
    ends = span(loop, path)
    if ends is None:
        why = "the number of iterations depends on values"
        return program.with_(_note(loop, f"no place for {listed} in each iteration: {why}"))
    narrow = sorted(s.type.dtype for s in scalars if s.type.dtype in (*NARROW, "bool"))
    if narrow:
        why = f"memory would round {narrow[0]}" if narrow[0] != "bool" else "a bool is no factor"
        return program.with_(_note(loop, f"no place for {listed} in each iteration: {why}"))
    used_names = names_of(program.kernel)
    rows = Rows(loop, ends, lambda name: unused(name, used_names))
    for scalar in scalars:
        rows.add(scalar.name, scalar.type, scalar.line)
    second = Var(unused(loop.var, used_names), INT)
    rest = tuple(rows.moved(s, second) for s in loop.body[len(first) :])
    parts = (replace(loop, body=(*first, *rows.filled())), replace(loop, var=second.name, body=rest))
    changed = with_loop_replaced(program.kernel, loop.var, parts)
    made = {row.name: row for row in rows.buffers.values()}
    buffers = {**program.kernel.buffers, **made}
    owners = dict.fromkeys(made, tuple(each.var for each in path))
    note = _note(loop, f"a place for {listed} in each iteration, so that the sums have loops of their own")
    kernel = replace(changed, buffers=buffers)
    return program.with_(note, kernel=kernel, owners={**program.owners, **owners})


def _read_inside(kernel: Kernel, first: Sequence[Assign], rest: tuple[Stmt, ...]) -> list[Assign]:
    """Return the scalars that the statements after them read; none unless each could have a place."""
    if not _are_apart(first, rest):
        return []
    read = variables_of(*statements(rest))
    scalars = [s for s in first if s.name in read]
    everywhere = [s.name for s in statements(kernel.body) if isinstance(s, Assign)]
    return [] if any(everywhere.count(s.name) > 1 for s in scalars) else scalars


def _note(loop: For, text: str) -> Note:
    return Note(loop.line, f"loop {loop.var}: {text}", "rows_of_scalars")


def _are_apart(first: Sequence[Assign], rest: Sequence[Stmt]) -> bool:
    """Whether scalars come first, and only sums follow that none of them reads."""
    inside = [s for s in statements(tuple(rest)) if not isinstance(s, For)]
    sums = [s for s in inside if isinstance(s, Store) and s.op == "+"]
    written = frozenset(s.buffer for s in sums)
    loops = all(isinstance(s, For) for s in rest)
    plain = not any(s.op or depends(s.value, written) for s in first)
    return bool(first and rest) and loops and len(sums) == len(inside) and plain
