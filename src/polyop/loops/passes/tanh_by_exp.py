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

from ..ir.grammar import Const, Expr, Kernel, Op, Stmt, children, statements, walk
from ..ir.note import Note
from ..ir.rewriter import rewrite
from ..ir.types import WIDE
from ..program import Program

TEXTS = {
    "+": "1 + tanh(u) is computed as 2 / (1 + exp(-2 u)), without the polynomial of tanh",
    "-": "1 - tanh(u) is computed as 2 / (1 + exp(2 u)), without the polynomial of tanh",
}


def tanh_by_exp(program: Program) -> Program:
    """Return the program with sums of 1 and a hyperbolic tangent as quotients."""
    kernel = program.kernel
    chosen = _only_in_sums(kernel)

    def change(expr: Expr) -> Expr:
        return _quotient(expr) if expr in chosen else expr

    body = tuple(rewrite(statement, change) for statement in kernel.body)
    if body == kernel.body:
        return program
    found = ((node.line, e) for node in statements(kernel.body) for e in walk(node) if e in chosen)
    sums = {(line, e.name) for line, e in found if isinstance(e, Op)}
    notes = (Note(line, TEXTS[name], "tanh_by_exp") for line, name in sorted(sums))
    return program.with_(*notes, kernel=replace(kernel, body=body))


def _only_in_sums(kernel: Kernel) -> set[Expr]:
    """Return the sums and differences to change.

    Each is all that reads its hyperbolic tangent: 1 + tanh(u) beside 1 - tanh(u) would take two exponentials
    for one. A sum in which another one stands stays.
    """
    readers: dict[Expr, set[Expr | Stmt]] = defaultdict(set)
    for node in statements(kernel.body):
        for reader in (node, *walk(node)):
            for tanh in (e for e in children(reader) if isinstance(e, Op) and e.name == "tanh"):
                readers[tanh].add(reader)
    alone = (e for found in readers.values() if len(found) == 1 for e in found)
    sums = {e for e in alone if isinstance(e, Op) and _tanh_of(e) is not None}
    return {e for e in sums if not any(inner in sums for inner in walk(e) if inner is not e)}


def _tanh_of(node: Expr | Stmt) -> Op | None:
    """Return the hyperbolic tangent that an expression adds to 1 or subtracts from it, or None."""
    match node:
        case Op("+" | "-", (Const(1.0), Op("tanh") as tanh)) | Op("+", (Op("tanh") as tanh, Const(1.0))):
            return tanh if tanh.type.dtype in WIDE else None
    return None


def _quotient(total: Expr) -> Op:
    """Return 2 / (1 + exp(k u)), where k is -2 in a sum with tanh(u) and 2 in a difference."""
    tanh = _tanh_of(total)
    assert tanh is not None
    assert isinstance(total, Op)
    (u,), of_type = tanh.args, tanh.type
    factor = -2.0 if total.name == "+" else 2.0
    power = Op("*", (Const(factor, of_type), u), of_type)
    match u:
        case Op("*", (Const(float(number)), other)) if abs(number) < np.finfo(of_type.dtype).max / 2:
            power = Op("*", (Const(factor * number, of_type), other), of_type)  # exact
    below = Op("+", (Const(1.0, of_type), Op("exp", (power,), of_type)), of_type)
    return Op("/", (Const(2.0, of_type), below), of_type)
