"""Replace divisions by an invariant of an innermost loop by products with its reciprocal.

    for j in range(n):                     over = 1.0 / s[i]
        y[i, j] = x[i, j] / s[i]      ->   for j in range(n):
                                               y[i, j] = x[i, j] * over

Only derived kernels are changed, because the last bit of the result may differ. If the divisor is so close to
zero that its reciprocal overflows, the result is infinite.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..analysis.strides import depends
from ..ir.grammar import (
    BOOL,
    Assign,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Op,
    Stmt,
    Var,
    children,
    names_of,
    unconditional,
    unused,
)
from ..ir.rewriter import Place, rewrite, with_statements
from ..ir.types import WIDE
from ..ir.uses import assigned_by, stored_by
from ..program import Program


def reciprocals(program: Program) -> Program:
    """Return the program with reciprocals computed before their loops."""
    return program.with_(kernel=hoist_reciprocals(program.kernel))


def hoist_reciprocals(kernel: Kernel) -> Kernel:
    """Return the kernel with reciprocals computed before their loops."""
    if not kernel.derived:
        return kernel
    used_names = names_of(kernel)

    def change(node: Stmt, _place: Place) -> Sequence[Stmt] | None:
        if isinstance(node, For) and not any(isinstance(s, (For, If)) for s in node.body):
            return tuple(_hoisted(node, used_names))
        return None

    return replace(kernel, body=with_statements(kernel.body, change))


def _hoisted(loop: For, used_names: set[str]) -> Iterator[Stmt]:
    """Yield the reciprocals of what an innermost loop divides by, and the loop with products."""
    changing = frozenset({loop.var, *stored_by(loop.body), *assigned_by(loop.body)})
    reciprocal_of: dict[Expr, Expr] = {}
    for quotient in (q for s in loop.body for e in children(s) for q in _quotients(e)):
        divisor = quotient.args[1]
        if divisor in reciprocal_of or depends(divisor, changing) or quotient.type.dtype not in WIDE:
            continue
        name = unused("over", used_names)
        one, zero = (Const(value, quotient.type) for value in (1.0, 0.0))
        runs = Op("<", (loop.lo, loop.hi), BOOL)  # otherwise the divisor may be out of range
        value = Op("select", (runs, Op("/", (one, divisor), quotient.type), zero), quotient.type)
        scalar = Assign(name, value, "", loop.line)
        reciprocal_of[divisor] = Var(name, scalar.type)
        yield scalar

    def change(expr: Expr) -> Expr:
        if isinstance(expr, Op) and expr.name == "/" and expr.args[1] in reciprocal_of:
            return Op("*", (expr.args[0], reciprocal_of[expr.args[1]]), expr.type)
        return expr

    yield replace(loop, body=tuple(rewrite(s, change) for s in loop.body)) if reciprocal_of else loop


def _quotients(expr: Expr) -> Iterator[Op]:
    """Yield the divisions that no condition guards; a division by a constant is left as it is."""
    for e in unconditional(expr):
        if isinstance(e, Op) and e.name == "/" and not isinstance(e.args[1], Const):
            yield e
