"""Write out the integers that scalars hold where the scalars are used.

    p = t + q - 1              y[t] += x[t + q - 1]
    y[t] += x[p]        ->

Then the indices are affine, and every analysis can reason about them.
"""

from __future__ import annotations

from dataclasses import replace

from ..analysis.affine import is_integer
from ..ir.grammar import Assign, Const, Expr, For, Kernel, Op, Size, Var, statements, walk
from ..ir.rewriter import map_body, substitute
from ..ir.uses import variables_of
from ..program import AnyProgram

MAX_NODES = 16
"""A scalar whose value is larger than this stays: its copies would cost more than it does."""


def propagate_indices(program: AnyProgram) -> AnyProgram:
    """Return the program without scalars that only name an index."""
    return program.with_(kernel=propagate(program.kernel))


def propagate(kernel: Kernel) -> Kernel:
    """Return the kernel without scalars that only name an index."""
    nodes = tuple(statements(kernel.body))
    assigned = [s.name for s in nodes if isinstance(s, Assign)]
    loops = {s.var for s in nodes if isinstance(s, For)}
    values: dict[str, Expr] = {}
    for node in nodes:  # in order: a value may read scalars that were assigned before it
        if not isinstance(node, Assign) or node.op or assigned.count(node.name) != 1:
            continue
        value: Expr = substitute(node.value, values)
        names = variables_of(value)
        loads_nothing = all(isinstance(e, (Const, Op, Size, Var)) for e in walk(value))
        is_index = is_integer(value.type) and value.type.weak and _is_short(value)
        if loads_nothing and is_index and names <= loops | kernel.attributes.keys():
            values[node.name] = value
    if not values:
        return kernel
    body = map_body(kernel.body, lambda s: () if isinstance(s, Assign) and s.name in values else (s,))
    return replace(kernel, body=tuple(substitute(s, values) for s in body))


def _is_short(value: Expr) -> bool:
    return sum(1 for _ in walk(value)) <= MAX_NODES
