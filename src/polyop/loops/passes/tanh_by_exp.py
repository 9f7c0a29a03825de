"""Compute 1 + tanh(u) with one exponential, where nothing else reads the hyperbolic tangent.

    1.0 + tanh(u)    ->    2.0 / (1.0 + exp(-2.0 * u))
    1.0 - tanh(u)    ->    2.0 / (1.0 + exp(2.0 * u))

tanh takes an exponential, and a polynomial of its own that keeps the digits of small results. The sum is
small only near -1, where the text leaves the rounding of tanh(u) and the quotient is right. So authors'
kernels are changed too: no digit is lost.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

from ..ir.grammar import Const, Expr, Kernel, Op, Stmt, call, children, statements, walk
from ..ir.note import Note
from ..ir.rewriter import rewrite
from ..ir.types import WIDE
from ..program import Program

TEXTS = {
    "+": "1 + tanh(u) is computed as 2 / (1 + exp(-2 u)), without the polynomial of tanh",
    "-": "1 - tanh(u) is computed as 2 / (1 + exp(2 u)), without the polynomial of tanh",
}
"""The notes, by the operator between 1 and tanh(u)."""


def tanh_by_exp(program: Program) -> Program:
    """Return the program with sums of 1 and a hyperbolic tangent as quotients."""
    kernel = program.kernel
    quotients = _quotients(kernel)
    body = tuple(rewrite(statement, lambda e: quotients.get(e, e)) for statement in kernel.body)
    exprs = ((node.line, e) for node in statements(kernel.body) for e in walk(node))
    sums = {(line, e.name) for line, e in exprs if isinstance(e, Op) and e in quotients}
    notes = (Note(line, TEXTS[name], "tanh_by_exp") for line, name in sorted(sums))
    return program.with_(*notes, kernel=replace(kernel, body=body)) if quotients else program


def _quotients(kernel: Kernel) -> dict[Expr, Expr]:
    """Return the quotients by the sums and differences that they are in place of.

    Each sum is all that reads its hyperbolic tangent: 1 + tanh(u) beside 1 - tanh(u) would take two
    exponentials for one. A sum in which another one stands stays.
    """
    readers: dict[Op, set[Expr | Stmt]] = defaultdict(set)
    for node in statements(kernel.body):
        for reader in (node, *walk(node)):
            for tanh in (e for e in children(reader) if isinstance(e, Op) and e.name == "tanh"):
                readers[tanh].add(reader)
    found: dict[Expr, Expr] = {}
    for tanh, (reader, *others) in readers.items():
        quotient = _quotient(reader, tanh)
        if isinstance(reader, Op) and quotient is not None and not others:
            found[reader] = quotient
    return {e: q for e, q in found.items() if not any(inner in found for inner in walk(e) if inner is not e)}


def _quotient(reader: Expr | Stmt, tanh: Op) -> Expr | None:
    """Return 2 / (1 + exp(k u)): k is -2 for 1 + tanh(u), 2 for 1 - tanh(u). None for another expression."""
    (u,), of_type = tanh.args, tanh.type
    if of_type.dtype not in WIDE:
        return None
    match reader:
        case Op("+", (Const(1.0), _) | (_, Const(1.0))):
            factor = -2.0
        case Op("-", (Const(1.0), _)):
            factor = 2.0
        case _:
            return None
    match u:
        case Op("*", (Const(float(number)), other)) if abs(number) < np.finfo(of_type.dtype).max / 2:
            u, factor = other, factor * number  # exact
    return 2.0 / (1.0 + call("exp", factor * u))
