"""The form that kernels are derived from: temporaries have their loops, scalars are tensors.

One notion of a value, an element of a buffer, is left; so one notion of where it is written and read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..analysis.bounds import demanded_bounds
from ..analysis.initialisation import Coverage, with_initialisation
from ..analysis.polyhedra import Model, scalar_owners
from ..analysis.session import IslSession
from ..ir.grammar import (
    INT,
    Assign,
    Buffer,
    Const,
    Expr,
    Kernel,
    Load,
    Stmt,
    Store,
    Type,
    Var,
    map_body,
    rewrite,
    statements,
)
from ..passes.array_privatisation import privatise
from ..passes.propagate_indices import propagate
from ..passes.unroll import unroll_short_loops

ZERO = (Const(0, INT),)
"""The index of a scalar in memory."""

Scopes = dict[str, tuple[str, ...]]
"""For each buffer the loops, outermost first, whose iterations have it for themselves."""


def in_memory(kernel: Kernel, session: IslSession) -> tuple[Kernel, Scopes, IslSession]:
    """Return the kernel without scalars, the scopes of its temporaries, a session that assumes its sizes."""
    kernel = unroll_short_loops(propagate(kernel))
    _, session = demanded_bounds(kernel, session)
    kernel, scopes = privatise(with_initialisation(kernel, session), session)
    lives = scalar_owners(kernel)
    kernel = _stored(kernel)
    return kernel, {**lives, **scopes}, session


def scopes_of(kernel: Kernel, session: IslSession, names: Iterable[str]) -> Scopes:
    """Return for each buffer the loops whose iterations read of it only what they wrote themselves."""
    coverage = Coverage(Model(kernel, session))
    found: Scopes = {}
    for name in names:
        if not coverage.writes(name):
            continue
        loops = coverage.shared_loops(name)
        levels = range(len(loops), 0, -1)
        level = next((n for n in levels if coverage.uncovered_read(name, n) is None), 0)
        found[name] = loops[:level]
    return found


def _stored(kernel: Kernel) -> Kernel:
    types = {s.name: s.type for s in statements(kernel.body) if isinstance(s, Assign)}
    if not types:
        return kernel
    lines = {s.name: s.line for s in reversed(list(statements(kernel.body))) if isinstance(s, Assign)}
    scalars = {
        name: Buffer(name, of.dtype, (Const(1, INT),), "local", lines[name]) for name, of in types.items()
    }

    def read(expr: Expr) -> Expr:
        known = isinstance(expr, Var) and expr.name in scalars
        return Load(expr.name, ZERO, Type(expr.type.dtype)) if known and isinstance(expr, Var) else expr

    def written(node: Store | Assign) -> Sequence[Stmt]:
        return (Store(node.name, ZERO, node.value, node.op, node.line) if isinstance(node, Assign) else node,)

    body = map_body([rewrite(node, read) for node in kernel.body], written)
    return replace(kernel, body=body, buffers={**kernel.buffers, **scalars})
