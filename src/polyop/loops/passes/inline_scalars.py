"""Inline a scalar into the one statement that reads it.

    s = x[i - 1] + x[i + 1]        y[i] = c[i] * (x[i - 1] + x[i + 1])
    y[i] = c[i] * s           ->

The gradient of one statement is a sum as that of any stencil. Of two, each iteration keeps an adjoint of the
scalar. A value with a slow function stays: each part of the gradient would compute it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..analysis.cost import HEAVY
from ..ir.grammar import Assign, Const, Kernel, Op, Stmt, Store, Var, statements, walk
from ..ir.rewriter import substitute, with_bodies
from ..ir.uses import assigned_by, stored_by, tensors_of, variables_of
from ..program import AnyProgram


def inline_scalars(program: AnyProgram) -> AnyProgram:
    """Return the program without scalars that are assigned once and read once, in the statements behind."""
    kernel = program.kernel
    single = _single(kernel)
    body = _written_out(kernel.body, single) if single else kernel.body
    return program if body == kernel.body else program.with_(kernel=replace(kernel, body=body))


def _single(kernel: Kernel) -> Mapping[str, Assign]:
    """Return the scalars that have one assignment and one read, and a value of quick operators."""
    nodes = tuple(statements(kernel.body))
    assigned = Counter(s.name for s in nodes if isinstance(s, Assign))
    read = Counter(e.name for s in nodes for e in walk(s) if isinstance(e, Var))
    return {
        s.name: s
        for s in nodes
        if isinstance(s, Assign) and not s.op and assigned[s.name] == read[s.name] == 1 and _is_quick(s)
    }


def _is_quick(node: Assign) -> bool:
    operators = [e for e in walk(node.value) if isinstance(e, Op) and e.name in HEAVY]
    return all(e.name == "/" and isinstance(e.args[1], Const) for e in operators)


def _written_out(body: Sequence[Stmt], single: Mapping[str, Assign]) -> tuple[Stmt, ...]:
    """Return a body without those scalars of ``single`` that their reader can do without."""
    rest = [with_bodies(node, lambda part: _written_out(part, single)) for node in body]
    result: list[Stmt] = []
    while rest:
        node = rest.pop(0)
        reader = _reader(node, rest) if isinstance(node, Assign) and node.name in single else None
        if reader is None or not isinstance(node, Assign):
            result.append(node)
        else:
            rest[reader] = substitute(rest[reader], {node.name: node.value})
    return tuple(result)


def _reader(node: Assign, behind: Sequence[Stmt]) -> int | None:
    """Return which statement reads a scalar, if it may as well read what the scalar is computed from."""
    tensors, names = tensors_of(node.value), variables_of(node.value)
    for number, other in enumerate(behind):
        if node.name in variables_of(other):
            return number if isinstance(other, (Store, Assign)) else None
        if stored_by((other,)) & tensors or assigned_by((other,)) & names:
            return None
    return None
