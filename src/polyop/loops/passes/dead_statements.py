"""Remove statements whose results nobody reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..ir.grammar import Assign, For, If, Load, Stmt, Store, Var, statements, walk


def without_unwanted(body: Sequence[Stmt], outputs: Iterable[str]) -> tuple[Stmt, ...]:
    """Return the statements that what ``outputs`` hold in the end depends on."""
    wanted = frozenset(outputs)
    while True:
        kept = _kept(body, wanted)
        reads = (e for s in statements(kept) for e in walk(s))
        more = {e.buffer if isinstance(e, Load) else e.name for e in reads if isinstance(e, (Load, Var))}
        if more <= wanted:
            return kept
        wanted |= more


def _kept(body: Sequence[Stmt], wanted: frozenset[str]) -> tuple[Stmt, ...]:
    found: list[Stmt] = []
    for node in body:
        match node:
            case For():
                inner = _kept(node.body, wanted)
                found += [replace(node, body=inner)] if inner else []
            case If():
                then, other = _kept(node.body, wanted), _kept(node.orelse, wanted)
                found += [replace(node, body=then, orelse=other)] if then or other else []
            case Store(buffer=name) | Assign(name=name) if name in wanted:
                found.append(node)
    return tuple(found)
