"""Partition a sequential loop among threads.

columns   In ``for t: for b:`` iterations with different t conflict, but never with different b. Each thread
          runs every t over its own part of the inner loop, without a barrier after each t.
rows      In ``y[index[i], j] += x[i, j]`` iterations conflict only if they pick the same row. Each thread
          goes through all iterations, in order, and runs those whose row is in its part of the tensor.
          So in ``y[index[i, k], j]``, where k picks the row and i is a loop around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..analysis.dependence import Conflict, Kind, Paths, carried, common, paths
from ..analysis.polyhedra import Model
from ..analysis.strides import depends
from ..ir.grammar import Assign, For, If, Stmt, Store, perfect, statements
from ..ir.plan import Row
from ..ir.uses import accesses_of, assigned_by, tensors_of, variables_of
from ..program import Program


@dataclass
class ThreadPartition:
    """By the variable of a sequential loop: the inner loop whose range is divided, or the rows."""

    columns: dict[str, str] = field(default_factory=dict)
    rows: dict[str, Row] = field(default_factory=dict)


def thread_partition(program: Program) -> ThreadPartition:
    """Return the partition of each outermost sequential loop that has one."""
    model, conflicts, kinds = program.model, program.conflicts, program.kinds
    owners, where, result = program.owners, paths(program.model), ThreadPartition()

    def visit(body: Sequence[Stmt]) -> None:
        for node in body:
            if isinstance(node, If):
                visit((*node.body, *node.orelse))
            if not isinstance(node, For) or kinds[node.var].name == "parallel":
                continue
            chain = chain_of(node, kinds)
            inner, outer = chain[-1], frozenset(loop.var for loop in chain[:-1])
            divisible = not any(loop.hint in ("serial", "border") for loop in chain)
            divisible = divisible and not any((outer | {node.var}) & {*loops} for loops in owners.values())
            sequential = [loop for loop in chain if kinds[loop.var].name != "parallel"]
            row = next(_rows(model, sequential, conflicts, where), None) if divisible else None
            if row is not None:
                result.rows[node.var] = row
            elif not outer or kinds[inner.var].name != "parallel":
                visit(node.body)
            else:
                fixed = not depends(inner.lo, outer) and not depends(inner.hi, outer)
                assigned = assigned_by(inner.body)
                fixed = fixed and all(inner.var in model.owners[name] for name in assigned)
                divisible = divisible and fixed
                if divisible and not any(_crosses(model, c, where, outer, inner) for c in conflicts):
                    result.columns[node.var] = inner.var

    visit(program.kernel.body)
    return result


def chain_of(node: For, kinds: Mapping[str, Kind]) -> list[For]:
    """Return the perfect nest that starts at a loop, down to the first parallel loop."""
    chain = perfect(node)
    first = next((k for k, loop in enumerate(chain) if kinds[loop.var].name == "parallel"), len(chain))
    return chain[: first + 1]


def _crosses(model: Model, conflict: Conflict, where: Paths, outer: frozenset[str], inner: For) -> bool:
    """Whether a conflict is between different iterations of ``inner``, in any iterations of ``outer``."""
    kind, pairs = model.isl.dim_type, conflict.relation
    for one, other, loop in common(where[conflict.a.id], where[conflict.b.id]):
        if loop == inner.var:
            ahead = pairs.order_lt(kind.in_, one, kind.out, other)
            behind = pairs.order_gt(kind.in_, one, kind.out, other)
            return not ahead.is_empty() or not behind.is_empty()
        if loop not in outer:
            pairs = pairs.equate(kind.in_, one, kind.out, other)
    return False


def _rows(model: Model, loops: Sequence[For], conflicts: Sequence[Conflict], where: Paths) -> Iterator[Row]:
    """Yield the rows that a loop, or one of those inside it, picks by index, without any other conflict."""
    for depth, loop in enumerate(loops):
        outer = [x.var for x in loops[: depth + 1]]
        targets = {c.target for c in conflicts if any(_carries(model, c, where, var) for var in outer)}
        if len(targets) == 1:
            yield from _picked(loop, *targets)


def _picked(loop: For, target: str) -> Iterator[Row]:
    """Yield the rows of the target that the iterations of a loop pick."""
    inside = list(statements(loop.body))
    written = {s.buffer for s in inside if isinstance(s, Store)}
    if any(isinstance(s, Assign) for s in inside) or not any(isinstance(s, For) for s in inside):
        return  # to find the owner of a row costs as much as the work on one element
    names = frozenset(s.var for s in inside if isinstance(s, For))
    accesses = accesses_of(loop.body)
    on_target = [a for a in accesses if a.buffer == target]
    for axis, index in enumerate(on_target[0].index if on_target else ()):
        loads = tensors_of(index)
        varies = loop.var in variables_of(index)
        fixed = not loads & written and not depends(index, names)
        if loads and varies and fixed and all(a.index[axis] == index for a in on_target):
            yield Row(target, axis, index, loop.var)


def _carries(model: Model, conflict: Conflict, where: Paths, var: str) -> bool:
    """Whether the loop of ``var`` carries a conflict."""
    loops = [name for _, _, name in common(where[conflict.a.id], where[conflict.b.id])]
    return var in loops and not carried(model, conflict, where, loops.index(var)).is_empty()
