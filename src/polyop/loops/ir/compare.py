"""Comparisons of integers: exact for all pairs of dtypes, as in NumPy 2.

A Python number that is not written as a number is an int64: a loop variable, a size, an attribute.

>>> from .grammar import Var
>>> str(compared("==", Var("a", Type("uint8")), Var("b", Type("int8"))).args[0].type)
'int16'
>>> str(compared("<", Var("a", Type("uint64")), Var("i", INT)).name)
'and'
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from .grammar import BOOL, INT, Const, Expr, Op, Type
from .types import cast, fits, is_python_bool, join, kind

COMPARED: dict[str, Callable[..., bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def are_integers(*values: Expr) -> bool:
    """Whether all values are integers or bools, not all of them bools."""
    kinds = {kind(value.type) for value in values}
    return kinds <= {*"biu"} and kinds != {"b"}


def compared(name: str, left: Expr, right: Expr) -> Expr:
    """Return a comparison of two integers."""
    one, other = _own(left, right), _own(right, left)
    for value, type_ in ((left, other), (right, one)):
        if type_ is not None and _is_number(value) and not fits(_written(value), type_):
            return _fixed(name, left, right)
    if one is None or other is None or one == other:
        common = one or other or INT
    elif "uint64" in (one.dtype, other.dtype) and "i" in (kind(one), kind(other)):
        return _of_two_signs(name, left, right)
    else:
        common = join(Type(one.dtype), Type(other.dtype))
    return Op(name, (cast(left, common), cast(right, common)), BOOL)


def _is_number(value: Expr) -> bool:
    """Whether a value is written as a number, so that it takes the dtype of the other."""
    return isinstance(value, Const) and value.type == INT


def _written(value: Expr) -> int:
    assert isinstance(value, Const)
    return int(value.value)


def _own(value: Expr, other: Expr) -> Type | None:
    """Return the integer type of a value; None for a number that takes that of the other value."""
    if _is_number(value):
        return INT if _is_number(other) else None
    if value.type == BOOL and other.type.weak:
        return INT if is_python_bool(value) else Type("int64")
    return value.type if value.type.weak else Type(value.type.dtype)


def _fixed(name: str, left: Expr, right: Expr) -> Const:
    """Return the result of a comparison with a number that the other operand's type cannot hold.

    It is the same for every value of the type: 0 stands for the operand.
    """
    values = (value.value if isinstance(value, Const) else 0 for value in (left, right))
    return Const(bool(COMPARED[name](*values)), BOOL)


def _of_two_signs(name: str, left: Expr, right: Expr) -> Expr:
    """Return a comparison of a uint64 and a signed integer: a negative one is less than all of uint64."""
    if kind(left.type) == "i":
        return _of_two_signs(_SWAPPED[name], right, left)
    wide, signed = Type("uint64"), cast(right, Type("int64"))
    zero = Const(0, signed.type)
    as_unsigned = Op(name, (cast(left, wide), Op("cast", (signed,), wide)), BOOL)
    if name in (">", ">=", "!="):
        return Op("or", (Op("<", (signed, zero), BOOL), as_unsigned), BOOL)
    return Op("and", (Op(">=", (signed, zero), BOOL), as_unsigned), BOOL)
