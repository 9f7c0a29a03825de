"""Trip counts of loops, from which the host chooses the number of threads of a launch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...analysis.cost import Ranges, middle
from ...analysis.strides import depends
from ...ir.grammar import INT, Const, Expr, For, If, Op, Stmt


def trips(loop: For, around: Ranges) -> Expr:
    """Return the trip count of a loop; if it varies, at the middle of the loops around it, and at least 1."""
    varies = any(depends(e, frozenset(around)) for e in (loop.lo, loop.hi))
    lo, hi = (middle(e, around) for e in (loop.lo, loop.hi))
    return Op("max", (Const(int(varies), INT), Op("-", (hi, lo), INT)), INT)


def longest(
    body: Sequence[Stmt],
    loops: Sequence[For],
    selected: Callable[[For], bool],
    evaluable: Callable[[Expr], bool],
) -> Expr:
    """Return the longest ``evaluable`` trip count of the ``selected`` loops, or 512 if there is none."""
    lengths: list[Expr] = []

    def visit(nodes: Sequence[Stmt], around: Ranges) -> None:
        for node in nodes:
            if isinstance(node, If):
                visit((*node.body, *node.orelse), around)
            if not isinstance(node, For):
                continue
            count = trips(node, around)
            if selected(node) and evaluable(count) and count not in lengths:
                lengths.append(count)
            lo, hi = (middle(e, around) for e in (node.lo, node.hi))
            visit(node.body, {**around, node.var: (lo, hi)})

    visit(body, {f.var: (f.lo, f.hi) for f in loops})
    result: Expr = lengths[0] if lengths else Const(512, INT)
    for other in lengths[1:]:
        result = Op("max", (result, other), INT)
    return result
