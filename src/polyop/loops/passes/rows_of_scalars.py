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

from collections.abc import Sequence
from dataclasses import replace

from ..analysis.ranges import extreme, length
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


def with_rows_of_scalars(program: Program, path: tuple[For, ...]) -> Program:
    """Return the program with such loops directly inside the last loop of ``path`` in two."""
    for inner in path[-1].body:
        if isinstance(inner, For) and not inner.hint and inner.var not in program.kept_loops():
            program = _in_two(program, path, inner)
    return program


def _in_two(program: Program, path: tuple[For, ...], loop: For) -> Program:
    first = [s for s in loop.body if isinstance(s, Assign)]
    scalars = _read_inside(program.kernel, first, loop.body[len(first) :])
    if not scalars:
        return program
    listed = ", ".join(sorted(s.name for s in scalars))
    ranges = {each.var: (each.lo, each.hi) for each in path}
    low, high = extreme(loop.lo, ranges, up=False), extreme(loop.hi, ranges, up=True)
    if low is None or high is None:
        why = "the number of iterations depends on values"
        return program.with_(_note(loop, f"no place for {listed} in each iteration: {why}"))
    narrow = sorted(s.type.dtype for s in scalars if s.type.dtype in (*NARROW, "bool"))
    if narrow:
        why = f"memory would round {narrow[0]}" if narrow[0] != "bool" else "a bool is no factor"
        return program.with_(_note(loop, f"no place for {listed} in each iteration: {why}"))
    taken = names_of(program.kernel)
    rows = {
        s.name: Buffer(unused(f"{s.name}_row", taken), s.type.dtype, (length(low, high),), "local", s.line)
        for s in scalars
    }
    parts = _parts(loop, first, rows, low, unused(loop.var, taken))
    changed = with_loop_replaced(program.kernel, loop.var, parts)
    buffers = {**program.kernel.buffers, **{row.name: row for row in rows.values()}}
    owners = dict.fromkeys((row.name for row in rows.values()), tuple(each.var for each in path))
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


def _parts(
    loop: For, first: Sequence[Assign], rows: dict[str, Buffer], low: Expr, second: str
) -> tuple[For, For]:
    """Return the loop that fills the rows, and the one over ``second`` that reads them."""

    def place(var: str) -> tuple[Expr, ...]:
        return (Var(var, INT) - low,)

    def read(expr: Expr) -> Expr:
        match expr:
            case Var(name=name) if name in rows:
                row = rows[name]
                return Load(row.name, place(second), Type(row.dtype), row.line)
            case Var(name=name) if name == loop.var:
                return Var(second, INT)
        return expr

    saved = [
        Store(rows[s.name].name, place(loop.var), Var(s.name, s.type), "", s.line)
        for s in first
        if s.name in rows
    ]
    rest = loop.body[len(first) :]
    return (
        replace(loop, body=(*first, *saved)),
        replace(loop, var=second, body=tuple(rewrite(s, read) for s in rest)),
    )


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
