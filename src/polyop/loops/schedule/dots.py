"""Sums of products of narrow integers, which processors add several at a time.

In ``total += int32(a[i, k]) * int32(b[k, j])`` of int8 tensors each factor fits into a byte. An instruction
multiplies four bytes by four others and adds the products to 32 bits. Sums of 32 bits wrap around, so they
are the same in any order.

What counts is the range of a factor, not its tensor: ``int32(a[i, k]) - int32(zero[i])`` fits into 16 bits,
and ``int32(w[j, k] & 15) - 8`` into a byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...core.dtypes import dtype
from ..analysis.bounds import Bounds, key
from ..analysis.strides import depends
from ..ir.grammar import Assign, Expr, For, If, Load, Op, Stmt, children, walk
from ..ir.intervals import interval, is_within
from ..ir.plan import Dot
from ..ir.types import kind
from ..ir.uses import assigned_by, loads_of, stored_by

WORDS = {"int32", "uint32"}
SUMS = {*WORDS, "float32"}
BYTES = {"i8": (-128, 127), "u8": (0, 255)}
HALVES = (-(2**15), 2**15 - 1)
OF_KIND = {"bf16": {"float32"}}
"""By kind, the dtypes of its sums and products; ``WORDS`` for those of integers."""


def dots_of(row: For, lane: For, bounds: Bounds, *, floats: bool) -> tuple[Dot, ...]:
    """Return the sums of a tile that are dots: every statement of their loops is one.

    ``floats``: whether sums of floats may be too, whose rounding depends on the processor.
    """
    sums, found = list(sums_of(lane.body)), list[Dot]()
    nested = any(isinstance(s, For) for loop in sums for s in loop.body)
    if nested or any(depends(e, frozenset({row.var})) for e in (lane.lo, lane.hi)):
        return ()
    inside = frozenset({row.var, lane.var} | assigned_by(lane.body))
    for loop in sums:
        dots = [_dot(s, loop, row, lane, bounds) for s in loop.body]
        ends = (loop.lo, loop.hi)
        is_known = not any(depends(e, inside) or loads_of(e) for e in ends)
        if is_known and loop.hint not in ("serial", "border") and None not in dots:
            of_loop = [dot for dot in dots if dot is not None]
            found += of_loop if floats or not any(dot.kind == "bf16" for dot in of_loop) else []
    return tuple(found)


def sums_of(body: Sequence[Stmt]) -> Iterator[For]:
    """Yield the loops of a tile's sums; a condition around one only tests whether it has iterations."""
    for node in body:
        if isinstance(node, For):
            yield node
        elif isinstance(node, If):
            yield from sums_of(node.body)


def _dot(node: Stmt, loop: For, row: For, lane: For, bounds: Bounds) -> Dot | None:
    """Return a statement as a dot, or None."""
    if not isinstance(node, Assign) or node.op != "+" or node.type.dtype not in SUMS:
        return None
    product = _uncast(node.value)
    if not isinstance(product, Op) or product.name != "*" or product.type.dtype not in SUMS:
        return None
    rows, lanes = frozenset({row.var}), frozenset({lane.var})
    for one, other in (product.args, product.args[::-1]):
        apart = depends(one, rows) and depends(other, lanes)
        apart = apart and not depends(one, lanes) and not depends(other, rows)
        if apart and all(_is_packable(e, loop, lane, bounds) for e in (one, other)):
            wide = any(_is_wide(e, rows | lanes | {loop.var}) for e in (one, other))
            found = None if wide else _kind(one, other)
            if found is not None and {node.type.dtype, product.type.dtype} <= OF_KIND.get(found[0], WORDS):
                return Dot(loop.var, node.name, one, other, *found, node.type, node.line)
    return None


def _uncast(expr: Expr) -> Expr:
    """Return an expression without casts between integers of 32 bits: a sum modulo 2**32 is the same."""
    while (
        isinstance(expr, Op) and expr.name == "cast" and {expr.type.dtype, expr.args[0].type.dtype} <= WORDS
    ):
        expr = expr.args[0]
    return expr


def _is_packable(expr: Expr, loop: For, lane: For, bounds: Bounds) -> bool:
    """Whether a factor can be computed ahead of the tile, which leaves what it reads alone."""
    changed = frozenset(assigned_by(lane.body) | stored_by(lane.body))
    checked = any(bounds.axes(e) or key(e) in bounds.guarded for e in loads_of(expr))
    return not checked and not depends(expr, changed) and depends(expr, frozenset({loop.var}))


def _is_wide(expr: Expr, names: frozenset[str]) -> bool:
    """Whether a step of a factor, other than an index, has more bytes than a sum in each lane."""
    if depends(expr, names) and dtype(expr.type.dtype).itemsize > 4:
        return True
    return not isinstance(expr, Load) and any(_is_wide(e, names) for e in children(expr))


def _kind(row: Expr, column: Expr) -> tuple[str, bool] | None:
    """Return the narrowest kind whose elements hold both factors, and whether the columns are flipped."""
    if all(_is_brain(e) for e in (row, column)):
        return "bf16", False
    if any(kind(e.type) not in "iub" for factor in (row, column) for e in walk(factor)):
        return None
    ranges = interval(row, {}), interval(column, {})
    rows, columns = ([k for k, of in BYTES.items() if is_within(one, of)] for one in ranges)
    for flipped in (False, True):
        for one in rows:
            if any((one == other) == flipped for other in columns):
                return one, flipped
    return ("i16", False) if all(is_within(one, HALVES) for one in ranges) else None


def _is_brain(factor: Expr) -> bool:
    """Whether a factor is a number of a bfloat16 tensor, in float32."""
    inner = factor.args[0] if isinstance(factor, Op) and factor.name == "cast" else factor
    return isinstance(inner, Load) and (inner.type.dtype, factor.type.dtype) == ("bfloat16", "float32")
