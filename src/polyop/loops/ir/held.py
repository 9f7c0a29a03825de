"""The type of an expression that takes the value of one of several, such as ``x if c else y``.

That is an arm of ``a if c else b``, of ``and`` and ``or``, an assignment of a scalar, an item of a table, the
greatest or least of integers. The type holds each of the values: a number that only a call knows, a loop
variable, a size or an attribute, as an int64 or float64; a number that is written by itself. In arithmetic it
counts as the operands of arithmetic do: ``x if c else 300`` of a uint8 is a uint16 that counts as uint8.

>>> from .grammar import FLOAT, Var
>>> x, slope = Var("x", Type("float32")), Var("slope", FLOAT)
>>> holding([x, Const(0.5, FLOAT)]).dtype, holding([x, slope]).dtype, holding([x, slope]).counts
('float32', 'float64', 'float32')
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core.dtypes import dtype
from .compare import are_integers, compared
from .grammar import BOOL, INT, Const, Expr, Op, Type
from .types import Refusal, cast, common, fits, join, kind, number_of


def holding(values: Sequence[Expr]) -> Type:
    """Return the type; raise ``Refusal`` for a uint64 and a negative number that is written."""
    if all(value.type == BOOL for value in values):
        return BOOL
    counted = common(tuple(values))
    if counted.weak or kind(counted) == "c":
        return counted
    held: Type | None = None
    for value in values:
        if not value.type.weak:
            own = Type(number_of(value.type).dtype)
            held = own if held is None else join(held, own)
    assert held is not None, "all of them are Python numbers"
    for value in values:
        if value.type.weak and not (isinstance(value, Const) and _is_exact(value, held)):
            held = _with_number(held, value)
    if held.dtype == counted.dtype or join(held, Type(counted.dtype)).dtype == counted.dtype:
        return counted
    return Type(held.dtype, counts=counted.dtype)


def _is_exact(number: Const, held: Type) -> bool:
    """Whether a type holds a number that is written."""
    if kind(held) in "iu":
        return isinstance(number.value, int) and fits(number.value, held)
    if kind(held) == "b":
        return False
    with np.errstate(over="ignore"):
        rounded = float(dtype(held.dtype).numpy.type(number.value))
    return rounded == number.value or number.value != number.value


def _with_number(held: Type, number: Expr) -> Type:
    """Return a type that holds a Python number too."""
    if held.dtype == "uint64" and number.type == INT:
        if isinstance(number, Const) and number.value < 0:
            raise Refusal("uint64 holds no negative number", number.value, "cast the other: int64(x[i])")
        return held  # no type holds both: a negative number is one modulo 2**64
    if isinstance(number, Const) and number.type == INT and kind(held) in "biu":
        least = np.min_scalar_type(int(number.value))
        return join(held, Type(least.name)) if least.kind in "iu" else held  # beyond 64 bits: cast raises
    return join(held, Type(number.type.dtype))


def stored_as(of: Type) -> Type:
    """Return the dtype of a temporary of such values: a float is rounded to what it counts as."""
    return Type(of.counts) if of.counts and kind(of) == "f" else of


def extreme(name: str, left: Expr, right: Expr) -> Expr | None:
    """Return ``max`` or ``min`` of integers whose type in arithmetic does not hold both, or None."""
    if not are_integers(left, right):
        return None
    held = holding((left, right))
    if held.dtype == "uint64" and INT in (left.type, right.type):
        if any(isinstance(one, Const) for one in (left, right)):
            return None
        first = compared(">=" if name == "max" else "<=", left, right)
        return Op("select", (first, cast(left, held), cast(right, held)), held)
    return Op(name, (cast(left, held), cast(right, held)), held) if held.counts else None
