"""Build typed operators: convert the arguments to the operator's own type, fold integer constants.

>>> from polyop.loops.ir.grammar import Var
>>> operate("+", Var("x", Type("float16")), Const(1, INT)).type.dtype
'float16'
>>> operate("/", Var("n", INT), Var("k", Type("int8"))).type.dtype
'float64'
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from .compare import COMPARED, are_integers, compared
from .complex_numbers import operate_complex
from .grammar import BOOL, FLOAT, INT, PARTS, Const, Expr, Notation, Op, Type
from .held import extreme, holding
from .operators import OPERATORS
from .types import Refusal, cast, common, converted, counted, fits, floating, is_python_bool, join, kind


def as_condition(expression: Expr) -> Expr:
    """Return the expression as a condition of type bool."""
    if expression.type.dtype == "bool":
        return expression
    return operate("!=", expression, Const(0, INT))


def select(condition: Expr, then: Expr, otherwise: Expr, of: Type | None = None) -> Expr:
    """Return ``then if condition else otherwise``, in a type that holds both, or in the type ``of``."""
    of = of or holding((then, otherwise))
    return Op("select", (as_condition(condition), cast(then, of), cast(otherwise, of)), of)


def where(condition: Expr, then: Expr | float, otherwise: Expr | float) -> Expr:
    """Return NumPy's ``where``, which promotes the two as arithmetic does."""
    then, otherwise = as_expression(then), as_expression(otherwise)
    both = BOOL if then.type == otherwise.type == BOOL else common((then, otherwise))
    return select(condition, then, otherwise, both)


_OF_BOOLS = {"+": "|", "*": "&", "max": "|", "min": "&"}
_FOLDED: dict[str, Callable[..., int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "neg": operator.neg,
}
MAX_FOLDED = 2**128
"""Limit of constant folding: a power of powers would fill the memory."""


def _has_result(name: str, numbers: list[int]) -> bool:
    """Whether Python computes the operator of these integers, and of a size that is worth it."""
    if name in ("//", "%"):
        return numbers[1] != 0
    return name not in ("<<", ">>") or 0 <= numbers[1] < MAX_FOLDED.bit_length()


def exact(value: int) -> Const:
    """Return a folded integer. An intermediate result may exceed 64 bits, as in Python."""
    if abs(value) >= MAX_FOLDED:
        raise Refusal("an integer must fit into 64 bits", hint="write a float, such as 2.0**64")
    return Const(value, INT)


def as_expression(operand: Expr | float) -> Expr:
    """Return an expression as it is, and a Python number as a constant."""
    if isinstance(operand, (int, float)):
        return Const(operand, FLOAT if isinstance(operand, float) else INT)
    return operand


def operate(name: str, *operands: Expr | float) -> Expr:
    """Return the operator applied to expressions and Python numbers, converted to its own type."""
    arguments = tuple(map(as_expression, operands))
    numbers = [int(a.value) for a in arguments if isinstance(a, Const) and a.type == INT]
    if len(numbers) == len(arguments) and name in _FOLDED and _has_result(name, numbers):
        return exact(_FOLDED[name](*numbers))
    if any(a.type.dtype in PARTS for a in arguments):
        return operate_complex(name, arguments)
    if name in COMPARED and are_integers(*arguments):
        return compared(name, *arguments)
    if name in ("max", "min") and (held := extreme(name, *arguments)):
        return held
    row = OPERATORS[name]
    common_type = BOOL if row.kinds == "b" else common(arguments)
    if name in _KEEP and not is_python_bool(arguments[0]):
        common_type = arguments[0].type
    if name in ("&", "|", "^") and all(map(is_python_bool, arguments)):
        common_type = BOOL
    if common_type == BOOL and name in _OF_BOOLS:
        return operate(_OF_BOOLS[name], *arguments)
    if common_type == BOOL and name in ("-", "neg", "ceil_div"):
        raise Refusal(f"{name} is not defined for bool", hint="write not x, or x ^ y, or cast with int32(x)")
    if common_type == BOOL and row.result == "same" and ("b" not in row.kinds or name in _SMALL):
        common_type = Type("int8")  # NumPy's first type for operators that have none for bool
    if row.result == "float" or row.kinds == "f":
        common_type = _float_of(name, arguments, common_type)
    if kind(common_type) not in row.kinds:
        hint = "cast first, with int32(x) for example"
        raise Refusal(f"{name} takes integers{' and bool' * ('b' in row.kinds)}", common_type, hint)
    args = tuple(converted(a, common_type) for a in arguments)
    return _folded(Op(name, args, BOOL if row.result == "bool" else common_type))


_KEEP = ("stop_gradient", "abs", "sign", "floor", "ceil", "trunc", "round")
"""What is computed of one number in the type that holds it."""
_SMALL = ("//", "%", "pow")


def _float_of(name: str, arguments: tuple[Expr, ...], common_type: Type) -> Type:
    """Return the float type of a function's result: each integer becomes a float; a quotient is float64."""
    if kind(common_type) == "f" or common_type.weak:
        return floating(common_type)
    if name == "/":
        return Type("float64")
    if any(a.type.weak for a in arguments):
        return floating(common_type)
    return functools.reduce(join, (floating(counted(a.type)) for a in arguments))


def fold(expression: Expr) -> Expr:
    """Return an operator of Python ints with its constants folded, where arguments have been replaced.

    What would not fit into 64 bits stays: it wraps around at run time, as it does for arguments that vary.
    """
    if not isinstance(expression, Op) or expression.type != INT or expression.name not in _FOLDED:
        return expression
    try:
        folded = operate(expression.name, *expression.args)
    except Refusal:
        return expression
    return folded if not isinstance(folded, Const) or fits(int(folded.value), INT) else expression


def _folded(expression: Op) -> Expr:
    """Return the operator with constants negated, and without ``+ 0`` and ``* 1`` of Python ints."""
    args, own = expression.args, expression.type
    if expression.name == "neg" and isinstance(args[0], Op) and args[0].name == "neg":
        return args[0].args[0]
    numbers: list[Any] = [a.value for a in args if isinstance(a, Const)]
    if expression.name == "neg" and numbers and (kind(own) == "f" or fits(-numbers[0], own)):
        return Const(-numbers[0], own)
    if own != INT or expression.name not in _FOLDED or len(args) == 1 or len(numbers) == 2:
        return expression
    if expression.name in ("+", "-"):
        return _sum(expression, args)
    if args[1] == Const(1, INT) and expression.name in ("*", "//"):
        return args[0]
    if expression.name == "*" and Const(0, INT) in args:
        return Const(0, INT)
    return args[1] if args[0] == Const(1, INT) and expression.name == "*" else expression


def _sum(expression: Op, args: tuple[Expr, ...]) -> Expr:
    """Return ``e + k`` or ``e - k`` with one positive constant, where there is a constant."""
    left, right = args
    if isinstance(left, Const) and expression.name == "+":
        left, right = right, left
    if not isinstance(right, Const):
        return right if left == Const(0, INT) and expression.name == "+" else expression
    step = int(right.value) if expression.name == "+" else -int(right.value)
    match left:
        case Op(name="+" | "-", args=(inner, Const(value=value))) if fits(step + abs(int(value)), INT):
            step += int(value) if left.name == "+" else -int(value)
            left = inner
    if step == 0:
        return left
    if not fits(abs(step), INT):
        return expression
    return Op("+" if step > 0 else "-", (left, Const(abs(step), INT)), INT)


def with_gradient(value: Expr, *pairs: Expr) -> Expr:
    """Return the value with the author's derivatives, in the value's type; a Python number takes the others'.

    ``pairs`` alternate: an expression, the derivative with respect to it. Raises ``Refusal`` for integers and
    complex numbers.
    """
    seen = next((operand.type for operand in (value, *pairs) if operand.type.dtype in PARTS), None)
    if seen is not None:
        parts = "complex(with_gradient(z.real, x, slope), with_gradient(z.imag, x, slope))"
        raise Refusal("with_gradient takes real numbers", seen, f"give each part its own: {parts}")
    for position, operand in enumerate((value, *pairs)):
        if kind(operand.type) != "f" and not (operand.type.weak and position % 2 == 0):
            role = "slope" if position % 2 == 0 else "expression to differentiate by"
            rule = f"the {role if position else 'value'} of with_gradient must be floating"
            raise Refusal(rule, operand.type, "cast it: float32(n)")
    common_type = common((value, *pairs)) if value.type.weak else counted(value.type)
    if kind(common_type) != "f":
        common_type = FLOAT
    return Op("with_gradient", tuple(cast(a, common_type) for a in (value, *pairs)), common_type)


def as_index(expression: Expr, subject: str) -> Expr:
    """Return an index, size or bound as an int64; raise ``Refusal`` for a float or a bool."""
    if kind(expression.type) not in "iu":
        raise Refusal(f"{subject} must be an integer", expression.type, "cast it: int(x)")
    return as_int64(expression)


def as_int64(expression: Expr) -> Expr:
    """Return an integer as an int64. A uint64 saturates, so that it never becomes a negative index."""
    if expression.type.dtype == "uint64":
        expression = operate("min", expression, Const(2**63 - 1, expression.type))
    return cast(expression, INT)


def power(base: Expr, exponent: Expr) -> Expr:
    """Return ``base ** exponent``; a negative constant power of Python ints is a float, as in Python."""
    if isinstance(exponent, Const) and exponent.type == INT and exponent.value < 0 and base.type == INT:
        return operate("pow", base, Const(float(exponent.value), FLOAT))
    if isinstance(exponent, Const) and isinstance(base, Const) and base.type == exponent.type == INT:
        number, times = int(base.value), int(exponent.value)
        if abs(number) < 2:
            times = min(times, 2 + times % 2)  # a power of 0, 1 or -1
        return exact(number**times if times < MAX_FOLDED.bit_length() else MAX_FOLDED)
    return operate("pow", base, exponent)


Notation.build = staticmethod(operate)
