"""Partition a sequential loop among threads.

columns   In ``for t: for b:`` only different t conflict, never different b. Each thread runs every t over its
          own part of the inner loop, and threads need not meet after each t.
rows      In ``y[index[i], j] += x[i, j]`` iterations conflict only where they pick the same row. Each thread
          goes through all iterations, in order, and runs those whose row is in its part of the tensor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..analysis.dependence import Conflict, Kind, Paths, carried, common, paths
from ..analysis.polyhedra import Model
from ..analysis.strides import depends
from ..ir.grammar import Assign, For, If, Load, Stmt, Store, Var, perfect, statements, walk
from ..ir.plan import Row
from ..program import Program


@dataclass
class ThreadPartition:
    """By the variable of an outermost loop in order: the inner loop that is split, or the rows."""

    columns: dict[str, str] = field(default_factory=dict)
    rows: dict[str, Row] = field(default_factory=dict)


def thread_partition(program: Program) -> ThreadPartition:
    """Return how each outermost loop that is not parallel can be shared, where it can."""
    model, found, kinds = program.model, program.conflicts, program.kinds
    owners, where, result = program.owners, paths(program.model), ThreadPartition()

    def visit(body: Sequence[Stmt]) -> None:
        for node in body:
            if isinstance(node, If):
                visit((*node.body, *node.orelse))
            if not isinstance(node, For) or kinds[node.var].name == "parallel":
                continue
            chain = chain_of(node, kinds)
            inner, outer = chain[-1], frozenset(loop.var for loop in chain[:-1])
            plain = not any(loop.hint in ("serial", "border") for loop in chain)
            alone = not any((outer | {node.var}) & {*loops} for loops in owners.values())
            row = next(_rows(model, node, found, where), None) if plain and alone else None
            if row is not None:
                result.rows[node.var] = row
            elif not outer or kinds[inner.var].name != "parallel":
                visit(node.body)
            else:
                fixed = not depends(inner.lo, outer) and not depends(inner.hi, outer)
                assigned = {s.name for s in statements(inner.body) if isinstance(s, Assign)}
                fixed = fixed and all(inner.var in model.owners[name] for name in assigned)
                if plain and alone and fixed and not any(_meet(model, c, where, outer, inner) for c in found):
                    result.columns[node.var] = inner.var

    visit(program.kernel.body)
    return result


def chain_of(node: For, kinds: Mapping[str, Kind]) -> list[For]:
    """Return a loop and those inside it, each alone in the one before, up to the first parallel one."""
    chain = perfect(node)
    first = next((k for k, loop in enumerate(chain) if kinds[loop.var].name == "parallel"), len(chain))
    return chain[: first + 1]


def _meet(model: Model, conflict: Conflict, where: Paths, outer: frozenset[str], inner: For) -> bool:
    """Whether a conflict is between different iterations of ``inner``, in any of the loops ``outer``."""
    kind, pairs = model.isl.dim_type, conflict.relation
    for one, other, loop in common(where[conflict.a.id], where[conflict.b.id]):
        if loop == inner.var:
            ahead = pairs.order_lt(kind.in_, one, kind.out, other)
            behind = pairs.order_gt(kind.in_, one, kind.out, other)
            return not ahead.is_empty() or not behind.is_empty()
        if loop not in outer:
            pairs = pairs.equate(kind.in_, one, kind.out, other)
    return False


def _rows(model: Model, node: For, found: Sequence[Conflict], where: Paths) -> Iterator[Row]:
    """Yield the rows that a loop picks by index, where nothing else is between its iterations."""
    inside = list(statements(node.body))
    written = {s.buffer for s in inside if isinstance(s, Store)}
    assigned = {s.name for s in inside if isinstance(s, Assign)}
    names = frozenset({s.var for s in inside if isinstance(s, For)} | assigned)
    if not any(isinstance(s, For) for s in inside):
        return  # whose row it is costs as much as a single element's work
    targets = {c.target for c in found if _carries(model, c, where, node.var)}
    if len(targets) != 1 or assigned:
        return
    (target,) = targets
    accesses: list[Load | Store] = [e for s in inside for e in walk(s) if isinstance(e, Load)]
    accesses += [s for s in inside if isinstance(s, Store)]
    ours = [a for a in accesses if a.buffer == target]
    for axis, index in enumerate(ours[0].index if ours else ()):
        loads = {e.buffer for e in walk(index) if isinstance(e, Load)}
        varies = any(isinstance(e, Var) and e.name == node.var for e in walk(index))
        fixed = not loads & written and not depends(index, names)
        if loads and varies and fixed and all(a.index[axis] == index for a in ours):
            yield Row(target, axis, index)


def _carries(model: Model, conflict: Conflict, where: Paths, var: str) -> bool:
    loops = [name for _, _, name in common(where[conflict.a.id], where[conflict.b.id])]
    return var in loops and not carried(model, conflict, where, loops.index(var)).is_empty()
