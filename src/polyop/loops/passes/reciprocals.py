"""Replace divisions by an invariant of an innermost loop by products with its reciprocal.

    for j in range(n):                     over = 1.0 / s[i]
        y[i, j] = x[i, j] / s[i]      ->   for j in range(n):
                                               y[i, j] = x[i, j] * over

Only derived kernels are changed, because the last bits of a result may differ. The reciprocal of a subnormal
number overflows, and no product may be infinite where the quotient is not. So such a divisor is scaled up by
a power of two first, and each product after it by the same power, which is 1 elsewhere:

    scale = 2.0**24 if abs(s[i]) < 2.0**-126 else 1.0
    over = 1.0 / (s[i] * scale)
    for j in range(n):
        y[i, j] = x[i, j] * over * scale
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ..analysis.strides import depends
from ..ir.derivatives import number
from ..ir.grammar import (
    Assign,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Op,
    Stmt,
    Var,
    call,
    children,
    names_of,
    unconditional,
    unused,
)
from ..ir.operate import select
from ..ir.rewriter import Place, rewrite, with_statements
from ..ir.types import WIDE, kind
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
    factors_of: dict[Expr, list[Expr]] = {}
    for quotient in (q for s in loop.body for e in children(s) for q in _quotients(e)):
        divisor = quotient.args[1]
        if divisor in factors_of or depends(divisor, changing) or quotient.type.dtype not in WIDE:
            continue
        runs = loop.lo < loop.hi  # otherwise the divisor may be out of range
        factors_of[divisor] = []
        scaled = divisor
        if not _is_whole(divisor):
            scale = Assign(
                unused("scale", used_names),
                select(runs, _scale(divisor), number(1.0, divisor.type)),
                "",
                loop.line,
            )
            factors_of[divisor].append(Var(scale.name, scale.type))
            scaled = divisor * factors_of[divisor][0]
            yield scale
        over = select(runs, number(1.0, divisor.type) / scaled, number(0.0, divisor.type))
        yield (made := Assign(unused("over", used_names), over, "", loop.line))
        factors_of[divisor].insert(0, Var(made.name, made.type))

    def change(expr: Expr) -> Expr:
        if isinstance(expr, Op) and expr.name == "/" and expr.args[1] in factors_of:
            return functools.reduce(operator.mul, factors_of[expr.args[1]], expr.args[0])
        return expr

    yield replace(loop, body=tuple(rewrite(s, change) for s in loop.body)) if factors_of else loop


def _is_whole(divisor: Expr) -> bool:
    """Whether a divisor is an integer, which is never subnormal."""
    return isinstance(divisor, Op) and divisor.name == "cast" and kind(divisor.args[0].type) in "iub"


def _scale(divisor: Expr) -> Expr:
    """Return 1, or for a subnormal divisor a power of two that makes it a normal number."""
    limits = np.finfo(divisor.type.dtype)
    power, least = 2.0 ** (limits.nmant + 1), float(limits.smallest_normal)
    small = call("abs", divisor) < number(least, divisor.type)
    return select(small, number(power, divisor.type), number(1.0, divisor.type))


def _quotients(expr: Expr) -> Iterator[Op]:
    """Yield the divisions that no condition guards; a division by a constant is left as it is."""
    for e in unconditional(expr):
        if isinstance(e, Op) and e.name == "/" and not isinstance(e.args[1], Const):
            yield e
