"""Types of expressions by NumPy 2's promotion rules for scalars, in which Python numbers are weak.

A violated rule raises ``Refusal`` without a location: the parser adds the line.
"""

from __future__ import annotations

import functools

import numpy as np

from ...core.dtypes import DTYPES, dtype
from .grammar import BOOL, COMPLEX, FLOAT, INT, PARTS, Const, Expr, Kernel, Op, Type


class Refusal(Exception):  # noqa: N818 - the parser makes it an error with a line
    """An expression that breaks a rule of types: the rule, what was seen, and what to write instead."""

    def __init__(self, rule: str, seen: object = None, hint: str | None = None) -> None:
        super().__init__(rule)
        self.rule, self.seen, self.hint = rule, seen, hint


_FLOATS = [row for row in DTYPES if row.kind == "float" and row.c]
BYTE_FLOATS = tuple(row.name for row in _FLOATS if row.itemsize == 1)
"""Floats of one byte, dtypes of tensors alone: a number that is read from one is a float32."""
WIDE = tuple(row.name for row in _FLOATS if row.itemsize >= 4)
"""Floats that compiled code computes in their own type."""
NARROW = tuple(row.name for row in _FLOATS if row.itemsize < 4)
"""Floats that compiled code computes in float32; sums of their gradients are float32."""


def kind(of: Type) -> str:
    """Return "b", "i", "u", "f" or "c"."""
    return "f" if of.dtype in NARROW else dtype(of.dtype).numpy.kind


def number_of(of: Type) -> Type:
    """Return the type that a number from a tensor has.

    >>> str(number_of(Type("float8_e5m2"))), str(number_of(Type("float16")))
    ('float32', 'float16')
    """
    return Type("float32") if of.dtype in BYTE_FLOATS else of


def counted(of: Type) -> Type:
    """Return the type that a value counts as in arithmetic."""
    return Type(of.counts) if of.counts else number_of(of)


def is_real(kernel: Kernel, buffer: str) -> bool:
    """Whether a buffer holds floating-point numbers."""
    return kind(Type(kernel.buffers[buffer].dtype)) == "f"


# ml_dtypes has no common dtype for these, but its scalars do: the NumPy dtype that holds both
_BFLOAT = {"int16": "float32", "uint16": "float32", "float16": "float32"} | dict.fromkeys(
    ("int32", "uint32", "int64", "uint64"), "float64"
)


def join(one: Type, other: Type) -> Type:
    """Return the common type of two operands.

    >>> str(join(INT, FLOAT)), str(join(BOOL, INT)), str(join(Type("int8"), FLOAT))
    ('float', 'int64', 'float64')
    """
    one, other = counted(one), counted(other)
    if one.weak and other.weak:
        return COMPLEX if COMPLEX in (one, other) else FLOAT if FLOAT in (one, other) else INT
    if one.weak or other.weak:
        weak, strong = (one, other) if one.weak else (other, one)
        if weak == INT:
            return Type("int64") if strong.dtype == "bool" else strong
        if weak == COMPLEX and kind(strong) != "c":
            return Type("complex64" if strong.dtype in (*NARROW, "float32") else "complex128")
        if strong.dtype == "bfloat16":
            return Type("float32")  # as scalars of ml_dtypes before 0.7; since then it is bfloat16
        return strong if kind(strong) in "fc" else Type("float64")
    names = {one.dtype, other.dtype}
    if len(names) == 1:
        return one
    if "bfloat16" in names:
        (other_name,) = names - {"bfloat16"}
        if other_name in _BFLOAT:
            return Type(_BFLOAT[other_name])
    return Type(dtype(np.result_type(dtype(one.dtype).numpy, dtype(other.dtype).numpy)).name)


def is_python_bool(expression: Expr) -> bool:
    """Whether the value is a Python ``bool``, which is an ``int`` in arithmetic."""
    match expression:
        case Const(type=constant_type, value=bool()):
            return constant_type == BOOL
        case Op(name="<" | "<=" | ">" | ">=" | "==" | "!=" | "and" | "or" | "not", args=args):
            return all(a.type.weak or is_python_bool(a) for a in args)
    return False


def common(arguments: tuple[Expr, ...]) -> Type:
    """Return the common type of all arguments."""
    if all(a.type.weak or is_python_bool(a) for a in arguments):
        return functools.reduce(join, (a.type if a.type.weak else INT for a in arguments))
    return functools.reduce(join, (counted(a.type) for a in arguments))


def floating(of: Type) -> Type:
    """Return the float type in which NumPy computes a function of this type."""
    if kind(of) == "f":
        return of
    if of.weak:
        return FLOAT
    return Type({1: "float16", 2: "float32"}.get(dtype(of.dtype).itemsize, "float64"))


def cast(expression: Expr, to: Type) -> Expr:
    """Return the expression converted to a type. A constant that the type can hold is converted at once.

    Between a Python number and the NumPy type of the same dtype no cast is needed. Raises ``Refusal`` for a
    Python int beyond 64 bits: constants are folded without limit, but compiled numbers would wrap.
    """
    if PARTS.keys() & {expression.type.dtype, to.dtype}:
        return _complex(expression, to)
    if isinstance(expression, Const) and expression.type == INT and not _is_held(int(expression.value), to):
        hint = "write a float: 2.0**64" if kind(to) == "f" else "numbers of compiled kernels have 64 bits"
        raise Refusal("an integer must fit into 64 bits", expression.value, hint)
    if to.dtype in BYTE_FLOATS and expression.type.dtype not in (to.dtype, "float32"):
        expression = cast(expression, Type("float32"))  # so that all hosts round alike
    is_read = isinstance(expression, Op) and expression.name == "cast" and expression.args[0].type == to
    if (
        to.dtype in BYTE_FLOATS
        and is_read
        and isinstance(expression, Op)
        and expression.type.dtype == "float32"
    ):
        return expression.args[0]  # read from a byte, so it is exact
    if expression.type.dtype == to.dtype:
        return Const(expression.value, to) if isinstance(expression, Const) else expression
    if isinstance(expression, Const):
        value = expression.value
        if kind(to) == "f":
            with np.errstate(over="ignore"):
                return Const(float(dtype(to.dtype).numpy.type(value)), to)
        if kind(to) in "iu" and isinstance(value, int) and fits(value, to):
            return Const(int(value), to)
        if kind(to) == "b":
            return Const(bool(value), to)
    return Op("cast", (expression,), to)


def _complex(expression: Expr, to: Type) -> Expr:
    """Return a number converted to a complex type; raise ``Refusal`` for a complex number to a real type."""
    if kind(to) != "c":
        raise Refusal(
            f"a complex number is not converted to {to}", expression.type, "write real(z), imag(z) or abs(z)"
        )
    if isinstance(expression, Const):
        return complex_constant(expression.value, to)
    return expression if expression.type.dtype == to.dtype else Op("cast", (expression,), to)


def complex_constant(value: complex, to: Type = COMPLEX) -> Const:
    """Return a complex number. Only the front end has such constants."""
    return Const(complex(value), to)  # type: ignore[arg-type]


def _is_held(value: int, to: Type) -> bool:
    """Whether a Python int to be cast fits into 64 bits: signed, or unsigned for uint64, bool, floats."""
    widest = kind(to) == "f" or to.dtype in ("uint64", "bool")
    return fits(value, INT) or (widest and fits(value, Type("uint64")))


def fits(value: int, to: Type) -> bool:
    """Whether an integer type can hold a number."""
    info = np.iinfo(dtype(to.dtype).numpy)
    return bool(int(info.min) <= value <= int(info.max))


def converted(expression: Expr, to: Type) -> Expr:
    """Return the expression implicitly converted; raise ``Refusal`` for a Python int that does not fit."""
    constant = isinstance(expression, Const) and expression.type == INT and kind(to) in "iu"
    if (
        constant
        and isinstance(expression, Const)
        and _is_held(value := int(expression.value), to) > fits(value, to)
    ):
        hint = f"write int64({expression.value}), or another cast, for a wider result"
        raise Refusal(f"a Python int that meets {to} must fit into it", expression.value, hint)
    return cast(expression, to)
