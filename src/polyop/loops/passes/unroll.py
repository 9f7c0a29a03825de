"""Unroll an inner loop with few iterations, if their number is a constant.

    for k in range(2):                 y[0] = x[i, 0]
        y[k] = x[i, k]          ->     y[1] = x[i, 1]

The control of such a loop would cost more than its body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..analysis.polyhedra import scalar_owners
from ..ir.grammar import (
    Const,
    For,
    If,
    Kernel,
    Stmt,
    names_of,
    statements,
    substitute,
    walk,
)
from ..program import AnyProgram
from .index_set_splitting import renamed_copy

MAX_TRIPS, MAX_NODES = 4, 64
"""The most iterations that are unrolled, and the most nodes of expressions in one of them."""


def unroll(program: AnyProgram) -> AnyProgram:
    """Return the program with short inner loops written out."""
    return program.with_(kernel=unroll_short_loops(program.kernel))


def unroll_short_loops(kernel: Kernel) -> Kernel:
    """Return the kernel with short inner loops written out."""
    return replace(kernel, body=_unrolled(kernel.body, 0, names_of(kernel), scalar_owners(kernel)))


def _unrolled(
    body: Sequence[Stmt], depth: int, used_names: set[str], scalar_loops: Mapping[str, Sequence[str]]
) -> tuple[Stmt, ...]:
    result: list[Stmt] = []
    for node in body:
        if isinstance(node, For):
            inner = replace(node, body=_unrolled(node.body, depth + 1, used_names, scalar_loops))
            result += _iterations(inner, used_names, scalar_loops) if depth else [inner]
        elif isinstance(node, If):
            then, other = (
                _unrolled(part, depth, used_names, scalar_loops) for part in (node.body, node.orelse)
            )
            result.append(replace(node, body=then, orelse=other))
        else:
            result.append(node)
    return tuple(result)


def _iterations(loop: For, used_names: set[str], scalar_loops: Mapping[str, Sequence[str]]) -> list[Stmt]:
    match loop.lo, loop.hi:
        case Const(value=int(lo)), Const(value=int(hi)) if 0 < hi - lo <= MAX_TRIPS:
            pass
        case _:
            return [loop]
    size = sum(1 for s in statements(loop.body) for _ in walk(s))
    if any(isinstance(s, For) for s in statements(loop.body)) or size * (hi - lo) > MAX_NODES * MAX_TRIPS:
        return [loop]
    result: list[Stmt] = []
    outer = {name for name, loops in scalar_loops.items() if loop.var not in loops}
    for number in range(lo, hi):
        copy = renamed_copy(loop, f"_{number}", used_names, outer) if number > lo else loop
        result += (substitute(s, {copy.var: Const(number, loop.lo.type)}) for s in copy.body)
    return result
