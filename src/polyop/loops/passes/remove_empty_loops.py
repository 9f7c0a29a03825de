"""Remove loops and conditions with an empty body.

    for i in range(n):          (gone)
        if x[i] > 0:
            pass

A bound or a condition that reads a tensor may be out of range, and that is an error which the author must
see. So an empty loop that reads one is kept, around an assignment to a scalar that nobody reads.

Later passes rely on it: they know a loop by the statements inside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ir.grammar import INT, Assign, Const, For, If, Kernel, Stmt, names_of, unused
from ..ir.uses import loads_of
from ..program import Program


def remove_empty_loops(program: Program) -> Program:
    """Return the program without empty loops and conditions."""
    return program.with_(kernel=without_empty_loops(program.kernel))


def without_empty_loops(kernel: Kernel) -> Kernel:
    """Return the kernel with a statement in every loop and condition."""
    return replace(kernel, body=without_empty(kernel.body, names_of(kernel)))


def without_empty(body: Sequence[Stmt], used_names: set[str]) -> tuple[Stmt, ...]:
    """Return a body with a statement in every loop and condition; new names are not in ``used_names``."""
    kept: list[Stmt] = []
    for node in body:
        match node:
            case For():
                inner = without_empty(node.body, used_names) or _dummy_if_it_reads(node, used_names)
                kept += [replace(node, body=inner)] if inner else []
            case If():
                then, other = (without_empty(part, used_names) for part in (node.body, node.orelse))
                then = then if then or other else _dummy_if_it_reads(node, used_names)
                kept += [replace(node, body=then, orelse=other)] if then or other else []
            case _:
                kept.append(node)
    return tuple(kept)


def _dummy_if_it_reads(node: For | If, used_names: set[str]) -> tuple[Stmt, ...]:
    """Return an assignment to a scalar that nobody reads, if a bound or condition reads a tensor."""
    if not loads_of(node):
        return ()
    return (Assign(unused("idle", used_names), Const(0, INT), "", node.line),)
