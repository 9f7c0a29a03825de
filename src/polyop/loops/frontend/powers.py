"""Powers of integers: a negative exponent is an error, as in NumPy, where the power is computed.

The exponent n becomes ``x[NEGATIVE_POWER] if n < 0 else n``, an access that fails (ir/failing.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from ..ir.failing import NEGATIVE_POWER, failing_load
from ..ir.grammar import INT, Buffer, Const, Expr, Load, Op, walk
from ..ir.operate import operate, power
from ..ir.rewriter import rewrite
from ..ir.types import Refusal, kind


def checked_power(
    base: Expr, exponent: Expr, buffers: Mapping[str, Buffer], is_natural: Callable[[Expr], bool], line: int
) -> Expr:
    """Return ``base ** exponent``. Raises ``Refusal`` for an integer to a negative number in the text."""
    result = power(base, exponent)
    if not isinstance(result, Op) or result.name != "pow" or kind(result.type) not in ("i", "u"):
        return result
    number = result.args[1]
    if isinstance(number, Const) and number.value < 0:
        hint = "write float64(x[i]) ** -1, or 1 / x[i]"
        raise Refusal("an integer to a negative power is no integer", number.value, hint)
    if isinstance(number, Const) or kind(exponent.type) != "i" or is_natural(exponent):
        return result
    failing = failing_load(NEGATIVE_POWER, (base, exponent), buffers, number.type, line)
    if failing is None:
        return result
    signed = exponent if number.type.dtype.startswith("u") else number  # -1 is 255 as the uint8 of the base
    negative = signed < 0
    return replace(result, args=(result.args[0], Op("select", (negative, failing, number), number.type)))


def without_checks(value: Expr) -> Expr:
    """Return a value without the checks of its powers: for a size, which reads no tensor."""
    result: Expr = rewrite(value, lambda e: e.args[2] if isinstance(e, Op) and _is_check(e) else e)
    return result


def conditions(value: Expr) -> Iterator[Expr]:
    """Yield what must hold for the powers in a value to be integers."""
    for e in walk(value):
        if isinstance(e, Op) and _is_check(e):
            yield without_checks(operate("not", e.args[0]))


def _is_check(e: Op) -> bool:
    if e.name != "select":
        return False
    read = e.args[1].args[0] if isinstance(e.args[1], Op) and e.args[1].name == "cast" else e.args[1]
    return isinstance(read, Load) and read.index[:1] == (Const(NEGATIVE_POWER, INT),)
