"""Replace divisions by a value that an innermost loop does not change by products with its reciprocal.

Only in derived kernels: what an author wrote is divided as written. The result may differ in its last bit.
It is infinite where the divisor is so close to zero that it has no reciprocal.
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
    Store,
    Var,
    children,
    names_of,
    rewrite,
    unconditional,
    unused,
)
from ..program import Program

WIDE = ("float32", "float64")


def reciprocals(program: Program) -> Program:
    """Return the program with the reciprocals before their loops."""
    return program.with_(kernel=hoist_reciprocals(program.kernel))


def hoist_reciprocals(kernel: Kernel) -> Kernel:
    """Return the kernel with the reciprocals before their loops."""
    if not kernel.derived:
        return kernel
    taken = names_of(kernel)

    def visit(body: Sequence[Stmt]) -> Iterator[Stmt]:
        for node in body:
            match node:
                case For() if any(isinstance(s, (For, If)) for s in node.body):
                    yield replace(node, body=tuple(visit(node.body)))
                case For():
                    yield from _hoisted(node, taken)
                case If():
                    yield replace(node, body=tuple(visit(node.body)), orelse=tuple(visit(node.orelse)))
                case _:
                    yield node

    return replace(kernel, body=tuple(visit(kernel.body)))


def _hoisted(loop: For, taken: set[str]) -> Iterator[Stmt]:
    inside = [s for s in loop.body if isinstance(s, (Store, Assign))]
    changing = frozenset({loop.var, *(s.buffer if isinstance(s, Store) else s.name for s in inside)})
    known: dict[Expr, Expr] = {}
    for quotient in (q for s in inside for e in children(s) for q in _quotients(e)):
        divisor = quotient.args[1]
        if divisor in known or depends(divisor, changing) or quotient.type.dtype not in WIDE:
            continue
        name = unused("over", taken)
        one, zero = (Const(value, quotient.type) for value in (1.0, 0.0))
        runs = Op("<", (loop.lo, loop.hi), BOOL)  # else the divisor may not exist
        value = Op("select", (runs, Op("/", (one, divisor), quotient.type), zero), quotient.type)
        scalar = Assign(name, value, "", loop.line)
        known[divisor] = Var(name, scalar.type)
        yield scalar

    def change(expr: Expr) -> Expr:
        if isinstance(expr, Op) and expr.name == "/" and expr.args[1] in known:
            return Op("*", (expr.args[0], known[expr.args[1]]), expr.type)
        return expr

    yield replace(loop, body=tuple(rewrite(s, change) for s in loop.body)) if known else loop


def _quotients(expr: Expr) -> Iterator[Op]:
    """Yield the divisions that are made whatever conditions say."""
    for e in unconditional(expr):
        if isinstance(e, Op) and e.name == "/" and not isinstance(e.args[1], Const):
            yield e
