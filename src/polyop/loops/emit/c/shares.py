"""A thread's share of a loop: a range of a nest, of columns, or of the rows that an index picks."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from dataclasses import replace

from ...ir.grammar import INT, For, Var, perfect
from ...ir.plan import Row
from ..common.c_text import identifier
from ..common.copies import plain
from ..common.expressions import Scope
from .coalesce import Step
from .indexed_rows import AHEAD, Around, picked
from .loops import Loops

COLUMNS = 256
"""Neighbouring columns stay with one thread: enough for sequential reads from memory."""
BLOCKS = "q"
"""The field of the kernel's struct with the number of blocks of lanes; no author's name is one of ``q``."""
SEARCHED = 512
"""How many iterations a thread searches at once for those of its own rows: their numbers are on its stack."""


def print_collapsed(
    loops: Loops, nest: Sequence[For], rows: Step | None = None, *, blocks: bool = False
) -> None:
    """Print the iterations ``begin`` .. ``end - 1`` of a nest, whose loops are counted like digits.

    ``rows``: of the innermost loop, if it takes several at a time. ``blocks``: the last digit is the block of
    lanes that the tile in the nest has.
    """
    out, scope, scalar = loops.out, Scope(), loops.expressions.scalar
    names = [identifier(loop.var) for loop in nest]
    out.line("int64_t q = begin;")
    if blocks:
        out.line(f"const int64_t q_3 = k->{BLOCKS};")
        out.line("int64_t q_2 = q % q_3;")
        out.line("q /= q_3;")
        loops.blocks = ("q_2", "q_3")
    for var, loop in reversed([*zip(names, nest, strict=True)]):
        out.line(f"const int64_t {var}_lo = {scalar(loop.lo, scope)}, {var}_end = {scalar(loop.hi, scope)};")
        out.line(f"const int64_t {var}_n = begin < end ? {var}_end - {var}_lo : 1;")
        out.line(f"int64_t {var} = {var}_lo + q % {var}_n;")
        out.line(f"q /= {var}_n;")
    inner, step = names[-1], rows.name if rows else "1"
    loops.around = Around.counting(nest[-1], f"{inner}_end")
    if rows:
        out.line(f"int64_t {rows.name} = 1;")
    with out.block(f"for (int64_t q_1 = begin; q_1 < end; q_1 += {step})"):
        if rows:
            out.line(rows.start(f"min_i64({inner}_end - {inner}, end - q_1)"))
            if blocks:
                out.line(f"if (q_3 > 1) {rows.name} = 1;")
        loops.stops.check(nest[-1].body, rows.name if rows else "")
        with loops.stops.inside():
            body = rows.body if rows else nest[-1].body
            loops.statements.body(body, plain(rows.scope(scope) if rows else scope))
        if blocks:
            out.line("if (++q_2 < q_3) continue;")
            out.line("q_2 = 0;")
        out.line(f"{inner} += {step};")
        for outer, var in reversed([*itertools.pairwise(names)]):
            out.line(f"if ({var} == {var}_end) {var} = {var}_lo, ++{outer};")


def print_columns(loops: Loops, node: For, inner: For) -> None:
    """Print a sequential loop for a part of a loop inside it.

    The part are the blocks ``begin`` .. ``end - 1``, of ``COLUMNS`` iterations each.
    """
    out = loops.out
    lo, hi = (loops.expressions.scalar(e, Scope()) for e in (inner.lo, inner.hi))
    out.line(f"const int64_t columns_lo = ({lo}) + begin * {COLUMNS};")
    out.line(f"const int64_t columns_end = ({lo}) + end * {COLUMNS};")
    out.line(f"const int64_t columns_hi = columns_end < ({hi}) ? columns_end : ({hi});")
    names = {"first column": "columns_lo", "last column": "columns_hi"}  # no author's variables
    first, last = (Var(name, INT) for name in names)
    part = _with(node, replace(inner, lo=first, hi=last))
    loops.loop(part, plain(Scope().with_names(names)))


def print_rows(loops: Loops, node: For, row: Row) -> None:
    """Print the iterations of a loop whose rows are ``begin`` .. ``end - 1``."""
    loops.out.line("struct polyop_failure q_2 = {.place = 1};")  # no author's names, as all q
    loops.out.line(f"int64_t q_3[{SEARCHED}];")
    nest = perfect(node)
    with contextlib.ExitStack() as blocks:
        for loop in itertools.takewhile(lambda loop: loop.var != row.loop, nest):
            var = identifier(loop.var)
            lo, hi = (loops.expressions.scalar(e, Scope()) for e in (loop.lo, loop.hi))
            head = f"for (int64_t {var} = {lo}, {var}_end = {hi}; {var} < {var}_end; ++{var})"
            blocks.enter_context(loops.out.block(head))
        _print_own_rows(loops, next(loop for loop in nest if loop.var == row.loop), row)


def _print_own_rows(loops: Loops, node: For, row: Row) -> None:
    """Print the iterations of the loop that picks the rows.

    The first thread also runs iterations whose row is outside the tensor: it reports the error.
    """
    out, expressions, var = loops.out, loops.expressions, identifier(node.var)
    size, index = expressions.size(row.buffer, row.axis), picked(expressions, row.index)
    lo, hi = (expressions.scalar(e, Scope()) for e in (node.lo, node.hi))
    with out.block(f"for (int64_t q_4 = {lo}, q_5 = {hi}; q_4 < q_5; q_4 += {SEARCHED})"):
        out.line(f"if (polyop_stops(k, {SEARCHED})) break;")
        out.line("int64_t q_6 = 0;")
        last = f"{var}_end = q_5 - q_4 < {SEARCHED} ? q_5 : q_4 + {SEARCHED}"
        with out.block(f"for (int64_t {var} = q_4, {last}; {var} < {var}_end; ++{var})"):
            out.line(f"const int64_t q = {index}, q_1 = q < 0 ? q + {size} : q;")
            out.line(f"q_3[q_6] = {var};")
            out.line(f"q_6 += q_1 >= 0 && q_1 < {size} ? q_1 >= begin && q_1 < end : begin == 0;")
        with out.block("for (int64_t q_7 = 0; q_7 < q_6; ++q_7)"):
            out.line(f"const int64_t {var} = q_3[q_7];")
            out.line(f"const int64_t q_8 = q_3[q_7 + {AHEAD} < q_6 ? q_7 + {AHEAD} : q_6 - 1];")
            loops.around = Around(node, "q_8", "")
            with loops.stops.inside():
                loops.statements.body(node.body, plain(Scope()))


def _with(node: For, inner: For) -> For:
    """Return a loop in which the loop of the same variable as ``inner`` is replaced by it."""
    if node.var == inner.var:
        return inner
    body = tuple(_with(s, inner) if isinstance(s, For) else s for s in node.body)
    return replace(node, body=body)
