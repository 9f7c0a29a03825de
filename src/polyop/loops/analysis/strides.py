"""Strides: how the address of an access changes when a loop takes a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..ir.grammar import INT, Buffer, Const, Expr, Load, Op, Store, Var, walk
from . import affine

UNIFORM, UNIT, BACK, STRIDED, UNKNOWN = "uniform", "unit", "back", "strided", "unknown"


def depends(expr: Expr, names: frozenset[str]) -> bool:
    """Whether an expression reads one of the named variables or tensors.

    >>> from polyop.loops.ir.grammar import INT
    >>> depends(Var("i", INT), frozenset({"i"}))
    True
    """
    return any(
        (isinstance(e, Var) and e.name in names) or (isinstance(e, Load) and e.buffer in names)
        for e in walk(expr)
    )


def stride(node: Load | Store, var: str, varying: frozenset[str] = frozenset()) -> str:
    """Return how the address changes with the loop variable.

    "uniform": not at all; "unit" and "back": by one element upwards or downwards; "strided": by any other
    constant number of elements; else "unknown". ``varying`` are scalars that change with the variable, and
    tensors that each of its iterations has for itself.
    """
    index = node.index
    if not any(depends(i, varying | {var}) for i in index):
        return UNIFORM
    if any(depends(i, varying) or _loads(i, varying | {var}) for i in index):
        return UNKNOWN
    forms = [affine.linear_with_terms(i) for i in index]
    steps = [None if form is None else form[0].get(var, 0) for form in forms]
    if any(step is None and depends(i, frozenset({var})) for step, i in zip(steps, index, strict=True)):
        return UNKNOWN
    if not any(steps):
        return UNKNOWN  # the variable cancels out, as in i - i
    if any(steps[:-1]):
        return STRIDED
    return {1: UNIT, -1: BACK}.get(steps[-1] or 0, STRIDED)


def is_of_pairs(node: Load | Store, var: str, buffer: Buffer) -> bool:
    """Whether an access takes one part of complex numbers that are adjacent along the loop."""
    return buffer.pairs and stride(replace(node, index=node.index[:-1]), var) == UNIT


def may_be_adjacent(node: Load | Store, var: str, buffer: Buffer) -> bool:
    """Whether an access is of neighbours along the loop for some sizes: those of ``b[k, 0]`` in one column.

    What is far apart by its index is adjacent where each dimension after that of the loop has one element.
    """
    steps = [affine.step(index, var) for index in node.index]
    axis = next((number for number, step in enumerate(steps) if step), len(steps))
    behind = [*zip(node.index[axis + 1 :], buffer.shape[axis + 1 :], strict=True)]
    one = all(index == Const(0, INT) and not isinstance(size, Const) for index, size in behind)
    return bool(behind) and steps[axis] == 1 and one


def _loads(index: Expr, names: frozenset[str]) -> bool:
    return any(isinstance(e, Load) and depends(e, names) for e in walk(index))


NARROW_INTEGERS = ("int8", "int16", "int32", "uint8", "uint16", "uint32")


def is_counted(expr: Expr, var: str, varying: frozenset[str]) -> bool:
    """Whether an expression narrows an integer that grows by one with the loop variable: ``int32(j - 1)``."""
    match expr:
        case Op(name="cast", args=(inner,)) if expr.type.dtype in NARROW_INTEGERS:
            counts = inner.type.dtype == "int64" and affine.step(inner, var) == 1
            return counts and not depends(inner, varying)
    return False


OF_PAIRS, OF_COLUMN, IN_ROW = "of pairs", "of a column", "in a row"
COSTS: Mapping[str, float] = {
    UNIFORM: 0.25, UNIT: 1.0, BACK: 2.0, OF_PAIRS: 2.0, OF_COLUMN: 4.0, IN_ROW: 5.0, STRIDED: 6.0,
    UNKNOWN: 24.0,
}  # fmt: skip
"""Costs of an access in a vector loop, in contiguous vector loads."""
