"""Rows that are added up element by element, several at once: what they are added to is loaded once for all.

Each element is still added to in the order of the rows: the result is the same to the last bit.
"""

from __future__ import annotations

from dataclasses import replace

from ..cost import HEAVY
from ..ir import INT, Const, Expr, For, Load, Op, Store, Type, Var, substitute, walk
from ..plan import Plan
from ..strides import depends
from .expressions import Expressions

ROWS = 4
"""Rows at once: as many streams as a processor follows beside what it writes."""


def jammed(node: For, plan: Plan, expressions: Expressions) -> For | None:
    """Return the loop inside ``node`` for ``ROWS`` of its iterations, or None where it is no such sum."""
    if len(node.body) != 1 or not isinstance(node.body[0], For) or node.body[0].var not in plan.vector:
        return None
    inner, outer = node.body[0], frozenset({node.var})
    store = inner.body[0]
    if len(inner.body) != 1 or not isinstance(store, Store) or store.op != "+":
        return None
    kind = Type(expressions.kernel.buffers[store.buffer].dtype)
    fixed = not any(depends(e, outer) for e in (*store.index, inner.lo, inner.hi))
    loads = [e for e in walk(store.value) if isinstance(e, Load)]
    plain = not any(expressions.axes(e) or e.buffer == store.buffer for e in loads)
    light = not any(isinstance(e, Op) and (e.name in HEAVY or e.name == "select") for e in walk(store.value))
    if kind.dtype not in ("float32", "float64") or not (fixed and plain and light) or expressions.axes(store):
        return None
    total: Expr = Load(store.buffer, store.index, kind, store.line)
    for row in range(ROWS):
        here = Op("+", (Var(node.var, INT), Const(row, INT)), INT)
        total = Op("+", (total, substitute(store.value, {node.var: here})), kind)
    return replace(inner, body=(replace(store, value=total, op=""),))
