"""Predictive commoning: what the iteration before has stored is in a scalar, and not loaded again.

    for j in range(1, n):                     if 1 < n:
        y[i, j] = y[i, j - 1] + x[i, j]           y_before = y[i, 0]
                                        ->        for j in range(1, n):
                                                      y_now = y_before + x[i, j]
                                                      y[i, j] = y_now
                                                      y_before = y_now

The load would wait for the store in each iteration. Without it the tensor is only written, so lanes across
its rows can be transposed in registers. Callahan, Carr and Kennedy, Improving register
allocation for subscripted variables, PLDI 1990; the name is GCC's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..analysis import affine
from ..analysis.bounds import always_runs
from ..ir.grammar import (
    BOOL,
    INT,
    Assign,
    Expr,
    For,
    If,
    Load,
    Op,
    Stmt,
    Store,
    Type,
    Var,
    is_lazy,
    names_of,
    statements,
    unused,
    walk,
)
from ..ir.note import Note
from ..ir.rewriter import Place, rewrite, substitute, with_statements
from ..ir.stops import stop_flags
from ..ir.types import NARROW
from ..ir.uses import loads_of, stores_to, variables_of
from ..program import Program


def predictive_commoning(program: Program) -> Program:
    """Return the program in which loops keep the element that the next iteration reads in a scalar."""
    kernel, used_names, notes = program.kernel, names_of(program.kernel), list[Note]()
    kept = program.kept_loops()

    def change(node: Stmt, place: Place) -> list[Stmt] | None:
        store = _carried(node, program) if isinstance(node, For) and node.var not in kept else None
        if store is None or not isinstance(node, For):
            return None
        notes.append(
            Note(store.line, f"{store.buffer}: the element before is in a scalar", "predictive_commoning")
        )
        leaf = next(leaf for leaf in program.model.leaves if leaf.node is store)
        before, after = _with_scalars(node, store, used_names)
        if always_runs(program.model, leaf, (*place.loops, node)):
            return [before, after]
        return [If(Op("<", (node.lo, node.hi), BOOL), (before, after), (), node.line)]

    body = with_statements(kernel.body, change)
    return program.with_(*notes, kernel=replace(kernel, body=body)) if notes else program


def _carried(loop: For, program: Program) -> Store | None:
    """Return the only store of a loop to a tensor of which it loads the element before, and no other.

    The loads are made in any case: the one before the loop is, too. They come before the store, which may
    be to the same element: ``y[j // 2]`` is ``y[(j - 1) // 2]``, and ``y[-1]`` is ``y[0]`` in a row of one.
    """
    if any(isinstance(s, (For, If)) for s in statements(loop.body)) or stop_flags(loop):
        return None
    assigned = {s.name for s in statements(loop.body) if isinstance(s, Assign)}
    optional = {e for s in loop.body for choice in walk(s) if is_lazy(choice) for e in loads_of(choice)}
    for position, store in enumerate(loop.body):
        if not isinstance(store, Store) or store.op or not _keeps_its_value(program, store):
            continue
        loads = {e for e in loads_of(*loop.body) if e.buffer == store.buffer}
        late = loads & {*loads_of(*loop.body[position + 1 :])}
        if not loads or late or loads & optional or len(stores_to(store.buffer, loop.body)) > 1:
            continue
        names = variables_of(*store.index)
        fixed = not names & assigned and not loads_of(*store.index)
        if not fixed or loop.var not in names or loop.var in program.owners.get(store.buffer, ()):
            continue
        before = _index_at(store.index, loop.var, Var(loop.var, INT) - 1)
        if all(_index_at(e.index, loop.var, Var(loop.var, INT)) == before for e in loads):
            return store
    return None


def _keeps_its_value(program: Program, store: Store) -> bool:
    """Whether memory has what is stored to the last bit, as a scalar would."""
    dtype = program.kernel.buffers[store.buffer].dtype
    return store.value.type.dtype == dtype and dtype not in (*NARROW, "bool")


def _index_at(index: Sequence[Expr], var: str, value: Expr) -> tuple[Expr, ...]:
    """Return an index for one value of a loop's variable, simplified."""
    return tuple(affine.simplified(substitute(i, {var: value})) for i in index)


def _with_scalars(loop: For, store: Store, used_names: set[str]) -> tuple[Stmt, For]:
    """Return the load of the element before the first one, and the loop that reads scalars instead."""
    type_ = Type(store.value.type.dtype)
    before, now = (Var(unused(f"{store.buffer}_{word}", used_names), type_) for word in ("before", "now"))

    def read(expr: Expr) -> Expr:
        return before if isinstance(expr, Load) and expr.buffer == store.buffer else expr

    body: list[Stmt] = []
    for node in loop.body:
        changed = rewrite(node, read)
        if node is store:
            body.append(Assign(now.name, changed.value, "", store.line))
            changed = replace(changed, value=now)
        body.append(changed)
    body.append(Assign(before.name, now, "", store.line))
    first = Load(store.buffer, _index_at(store.index, loop.var, loop.lo - 1), type_, store.line)
    return Assign(before.name, first, "", store.line), replace(loop, body=tuple(body))
