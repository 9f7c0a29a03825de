"""Remove statements that no output depends on.

The rule looks at names alone: a statement is live if it writes an output, or a buffer or scalar that a live
statement reads. Two other places remove code by other rules:

derive/dead_zeros.py  removes a store whose element is overwritten before it is read; isl proves that
passes/inline.py      removes the one store it has inlined; the author's other statements stay, because an
                      index out of range in them must still raise its error
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from ..ir.grammar import Assign, Kernel, Load, Stmt, Store, Var, statements, walk
from ..ir.rewriter import map_body
from ..ir.uses import tensors_of
from ..program import AnyProgram


def dead_statements(program: AnyProgram) -> AnyProgram:
    """Return the program without the statements and local buffers that no output depends on."""
    return program.with_(kernel=without_dead_statements(program.kernel))


def without_dead_statements(kernel: Kernel, wanted: AbstractSet[str] = frozenset()) -> Kernel:
    """Return the kernel without statements and local buffers that no output and nothing ``wanted`` needs."""
    return without_unused_buffers(replace(kernel, body=_live(kernel.body, {*kernel.outputs, *wanted})))


def unused_results(kernel: Kernel) -> set[str]:
    """Return the names that statements write and no output depends on."""
    return _written(kernel.body) - _written(_live(kernel.body, kernel.outputs))


def _written(body: tuple[Stmt, ...]) -> set[str]:
    return {_target(s) for s in statements(body) if isinstance(s, (Store, Assign))}


def without_unused_buffers(kernel: Kernel) -> Kernel:
    """Return the kernel without the local buffers that no statement reads or writes."""
    nodes = list(statements(kernel.body))
    used = {s.buffer for s in nodes if isinstance(s, Store)}
    used |= tensors_of(*nodes)
    buffers = {n: b for n, b in kernel.buffers.items() if b.role != "local" or n in used}
    return replace(kernel, buffers=buffers)


def _live(body: Sequence[Stmt], outputs: Iterable[str]) -> tuple[Stmt, ...]:
    """Return the statements of a body that ``outputs`` depend on."""
    live = frozenset(outputs)
    while True:
        kept = map_body(body, lambda s: (s,) if _target(s) in live else (), drop_empty=True)  # noqa: B023
        reads = (e for s in statements(kept) for e in walk(s))
        names = {e.buffer if isinstance(e, Load) else e.name for e in reads if isinstance(e, (Load, Var))}
        if names <= live:
            return kept
        live |= names


def _target(node: Store | Assign) -> str:
    return node.buffer if isinstance(node, Store) else node.name
