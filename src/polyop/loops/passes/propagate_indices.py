"""Write out the whole numbers that scalars hold (``p = t + q - pad``) where they are used.

Then indices are affine, and every analysis knows more of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..analysis.affine import is_integer
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
    statements,
    substitute,
    walk,
)
from ..program import AnyProgram


def propagate_indices(program: AnyProgram) -> AnyProgram:
    """Return the program without scalars that only name an index."""
    return program.with_(kernel=propagate(program.kernel))


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
