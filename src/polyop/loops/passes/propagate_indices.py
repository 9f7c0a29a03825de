"""Propagate integer scalars into the expressions that use them, and remove divisions that do nothing.

    p = t + q - 1              y[t] += x[t + q - 1]
    y[t] += x[p]        ->

    for o in range(n):         for o in range(n):
        y[o] = x[o // n]           y[o] = x[0]

Then the indices are affine, and every analysis can reason about them.
"""

from __future__ import annotations

from dataclasses import replace

from ..analysis import affine
from ..analysis.affine import is_integer
from ..analysis.ranges import Ranges, extreme
from ..ir.grammar import INT, Assign, Const, Expr, For, If, Kernel, Op, Size, Stmt, Var, statements, walk
from ..ir.operate import fold
from ..ir.rewriter import Place, map_body, rewrite, substitute, with_statements
from ..ir.uses import variables_of
from ..program import AnyProgram

MAX_NODES = 16
"""The most nodes of a value that is written out where it is used: copies of a longer one would cost more."""


def propagate_indices(program: AnyProgram) -> AnyProgram:
    """Return the program without scalars that only name an index, and without divisions that do nothing."""
    kernel = propagate(program.kernel)
    return program.with_(kernel=replace(kernel, body=with_statements(kernel.body, _without_divisions)))


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
        is_index = is_integer(value.type) and value.type.weak and sum(1 for _ in walk(value)) <= MAX_NODES
        if loads_nothing and is_index and names <= loops | kernel.attributes.keys():
            values[node.name] = value
    if not values:
        return kernel
    body = map_body(kernel.body, lambda s: () if isinstance(s, Assign) and s.name in values else (s,))
    return replace(kernel, body=tuple(substitute(s, values) for s in body))


def _without_divisions(node: Stmt, place: Place) -> tuple[Stmt, ...] | None:
    """Return a statement without divisions that do nothing in the loops around it; None if it has bodies."""
    ranges = {loop.var: (loop.lo, loop.hi) for loop in place.loops}

    def quotient(expr: Expr) -> Expr:
        if isinstance(expr, Op) and expr.name in ("//", "%") and _is_below(expr, ranges):
            return expr.args[0] if expr.name == "%" else Const(0, INT)
        return fold(expr)

    return None if isinstance(node, (For, If)) else (rewrite(node, quotient),)


def _is_below(quotient: Op, ranges: Ranges) -> bool:
    """Whether what is divided is at least 0, and less than the divisor, in all iterations."""
    value, divisor = quotient.args
    least, most = (extreme(value, ranges, up=up) for up in (False, True))
    if quotient.type != INT or least is None or most is None:
        return False
    return _is_positive(least + 1) and _is_positive(divisor - most)


def _is_positive(expr: Expr) -> bool:
    """Whether a sum of sizes is at least 1 for all of them."""
    form = affine.linear(expr)
    sizes = {affine.name_of(e) for e in walk(expr) if isinstance(e, Size)}
    if form is None or form.get("", 0) < 1:
        return False
    return all(factor == 0 or (factor > 0 and name in sizes) for name, factor in form.items() if name)
