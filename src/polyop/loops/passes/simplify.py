"""Rewritings before any analysis: what makes indices affine, and loops that are not worth being loops.

``propagate``  a whole number that a scalar holds (``p = t + q - pad``) is written out where it is used
``unroll``     an inner loop over a few iterations, their number known, becomes its iterations
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..analysis.affine import is_integer
from ..analysis.polyhedra import scalar_owners
from ..ir.grammar import (
    Assign,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Op,
    Size,
    Stmt,
    Var,
    names_of,
    statements,
    substitute,
    walk,
)
from .index_set_splitting import renamed_copy

TRIPS, SIZE = 4, 64
"""At most so many iterations, and so many nodes in each of them."""


def propagate(kernel: Kernel) -> Kernel:
    """Return the kernel without scalars that only name an index."""
    body = tuple(statements(kernel.body))
    assigned = [s.name for s in body if isinstance(s, Assign)]
    loops = {s.var for s in body if isinstance(s, For)}
    known: dict[str, Expr] = {}
    for node in body:  # in order: a value may be made of scalars before it
        if not isinstance(node, Assign) or node.op or assigned.count(node.name) != 1:
            continue
        value: Expr = substitute(node.value, known)
        names = {e.name for e in walk(value) if isinstance(e, Var)}
        plain = all(isinstance(e, (Const, Op, Size, Var)) for e in walk(value))
        whole = is_integer(value.type) and value.type.weak and _is_short(value)
        if plain and whole and names <= loops | kernel.attributes.keys():
            known[node.name] = value
    return replace(kernel, body=_written(kernel.body, known)) if known else kernel


def _is_short(value: Expr) -> bool:
    return sum(1 for _ in walk(value)) <= 16


def _written(body: Sequence[Stmt], known: Mapping[str, Expr]) -> tuple[Stmt, ...]:
    found: list[Stmt] = []
    for node in body:
        if isinstance(node, Assign) and node.name in known:
            continue
        changed: Stmt = substitute(node, known)
        if isinstance(changed, For):
            changed = replace(changed, body=_written(changed.body, known))
        elif isinstance(changed, If):
            changed = replace(
                changed, body=_written(changed.body, known), orelse=_written(changed.orelse, known)
            )
        found.append(changed)
    return tuple(found)


def unroll(kernel: Kernel) -> Kernel:
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
