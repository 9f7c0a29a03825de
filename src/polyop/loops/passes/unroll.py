"""Unroll an inner loop over a few iterations, their number known.

for k in range(2):          y[0] = x[i, 0]
y[k] = x[i, k]    ->    y[1] = x[i, 1]
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

TRIPS, SIZE = 4, 64
"""At most so many iterations, and so many nodes in each of them."""


def unroll(program: AnyProgram) -> AnyProgram:
    """Return the program with short inner loops written out."""
    return program.with_(kernel=unroll_short_loops(program.kernel))


def unroll_short_loops(kernel: Kernel) -> Kernel:
    """Return the kernel with short inner loops written out."""
    return replace(kernel, body=_unrolled(kernel.body, 0, names_of(kernel), scalar_owners(kernel)))


def _unrolled(
    body: Sequence[Stmt], depth: int, taken: set[str], lives: Mapping[str, Sequence[str]]
) -> tuple[Stmt, ...]:
    found: list[Stmt] = []
    for node in body:
        if isinstance(node, For):
            inner = replace(node, body=_unrolled(node.body, depth + 1, taken, lives))
            found += _iterations(inner, taken, lives) if depth else [inner]
        elif isinstance(node, If):
            then, other = (_unrolled(part, depth, taken, lives) for part in (node.body, node.orelse))
            found.append(replace(node, body=then, orelse=other))
        else:
            found.append(node)
    return tuple(found)


def _iterations(loop: For, taken: set[str], lives: Mapping[str, Sequence[str]]) -> list[Stmt]:
    match loop.lo, loop.hi:
        case Const(value=int(lo)), Const(value=int(hi)) if 0 < hi - lo <= TRIPS:
            pass
        case _:
            return [loop]
    size = sum(1 for s in statements(loop.body) for _ in walk(s))
    if any(isinstance(s, For) for s in statements(loop.body)) or size * (hi - lo) > SIZE * TRIPS:
        return [loop]
    found: list[Stmt] = []
    outer = {name for name, loops in lives.items() if loop.var not in loops}
    for number in range(lo, hi):
        copy = renamed_copy(loop, f"_{number}", taken, outer) if number > lo else loop
        found += (substitute(s, {copy.var: Const(number, loop.lo.type)}) for s in copy.body)
    return found
