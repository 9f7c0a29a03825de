"""Compute 1 + tanh(u) with one exponential, where nothing else reads the hyperbolic tangent.

    1.0 + tanh(u)    ->    2.0 / (1.0 + exp(-2.0 * u))
    1.0 - tanh(u)    ->    2.0 / (1.0 + exp(2.0 * u))

tanh needs a polynomial near zero besides the exponential, so that small results keep their digits. A sum
with 1 has no such results. Where tanh(u) is close to -1 the sum that was written loses its digits, and the
quotient does not: the two differ by the rounding of tanh(u).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ..ir.grammar import Const, Expr, Op, rewrite, statements, walk
from ..ir.note import Note
from ..program import Program
from .reciprocals import WIDE


def tanh_by_exp(program: Program) -> Program:
    """Return the program with sums of 1 and a hyperbolic tangent as quotients."""
    kernel = program.kernel
    found = [(node.line, e) for node in statements(kernel.body) for e in walk(node) if isinstance(e, Op)]
    in_sums = Counter(tanh for _, e in found if (tanh := _added_to_one(e)) is not None)
    all_uses = Counter(e for _, e in found if e.name == "tanh")
    only_in_sums = {tanh for tanh, count in in_sums.items() if all_uses[tanh] == count}
    if not only_in_sums:
        return program

    def change(expr: Expr) -> Expr:
        tanh = _added_to_one(expr)
        return _quotient(tanh, expr) if isinstance(expr, Op) and tanh in only_in_sums else expr

    text = "1 + tanh(u) is computed as 2 / (1 + exp(-2 u)), which takes one exponential and no polynomial"
    lines = {line for line, e in found if e in only_in_sums}
    notes = (Note(line, text, "tanh_by_exp") for line in sorted(lines))
    return program.with_(*notes, kernel=replace(kernel, body=tuple(rewrite(s, change) for s in kernel.body)))


def _added_to_one(expr: Expr) -> Op | None:
    """Return the hyperbolic tangent that an expression adds to 1 or subtracts from it, or None."""
    match expr:
        case Op("+" | "-", (Const(1.0), Op("tanh") as tanh)) | Op("+", (Op("tanh") as tanh, Const(1.0))):
            return tanh if tanh.type.dtype in WIDE else None
    return None


def _quotient(tanh: Op, total: Op) -> Op:
    """Return 2 / (1 + exp(k u)), where k is -2 in a sum with tanh(u) and 2 in a difference."""
    (u,), of_type = tanh.args, tanh.type
    factor = -2.0 if total.name == "+" else 2.0
    match u:
        case Op("*", (Const(float(number)), other)):  # a product with a power of two is exact
            power = Op("*", (Const(factor * number, of_type), other), of_type)
        case _:
            power = Op("*", (Const(factor, of_type), u), of_type)
    below = Op("+", (Const(1.0, of_type), Op("exp", (power,), of_type)), of_type)
    return Op("/", (Const(2.0, of_type), below), of_type)
