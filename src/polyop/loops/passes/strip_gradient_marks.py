"""Remove ``stop_gradient`` and ``with_gradient``: only derivatives read these marks.

    y[i] = stop_gradient(x[i])                 y[i] = x[i]
    y[i] += with_gradient(0.0, w[i], g[i])     (gone)

No later pass needs to know them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ir.grammar import Assign, Const, Expr, Kernel, Op, Stmt, Store, statements, walk
from ..ir.rewriter import map_body, rewrite
from ..program import Program
from .dead_statements import unused_results, without_dead_statements

MARKS = ("stop_gradient", "with_gradient")
"""Operators whose value is that of their first argument."""


def strip_gradient_marks(program: Program) -> Program:
    """Return the program without ``stop_gradient`` and ``with_gradient``: only derivatives read them."""
    return program.with_(kernel=without_marks(program.kernel))


def without_marks(kernel: Kernel) -> Kernel:
    """Return the kernel that computes the same values without the marks: each is its first argument.

    Statements that add a zero with a gradient are removed, and so is what only the slopes have read. What no
    output depends on in the author's text stays: an index out of range in it must still raise its error.
    """
    names = {e.name for s in statements(kernel.body) for e in walk(s) if isinstance(e, Op)}
    if not names & {*MARKS}:
        return kernel
    unused = unused_results(kernel)
    body = map_body(kernel.body, _without_zero, drop_empty=True)
    kernel = replace(kernel, body=tuple(rewrite(s, _value) for s in body))
    return without_dead_statements(kernel, unused) if "with_gradient" in names else kernel


def _without_zero(node: Store | Assign) -> Sequence[Stmt]:
    return () if node.op == "+" and _is_zero_with_gradient(node.value) else (node,)


def _value(expr: Expr) -> Expr:
    return expr.args[0] if isinstance(expr, Op) and expr.name in MARKS else expr


def _is_zero_with_gradient(value: Expr) -> bool:
    """Whether a value is ``with_gradient(0.0, ...)``, perhaps converted."""
    while isinstance(value, Op) and value.name == "cast":
        value = value.args[0]
    if not isinstance(value, Op) or value.name != "with_gradient":
        return False
    first = value.args[0]
    return isinstance(first, Const) and first.value == 0
