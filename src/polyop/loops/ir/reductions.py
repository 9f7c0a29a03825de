"""Recognise reductions such as ``x = x + e``: they become a Store or Assign with an ``op``."""

from __future__ import annotations

from dataclasses import replace

from ...core.dtypes import dtype
from .grammar import REDUCTIONS, Assign, Expr, Load, Op, Store, Type, Var, walk
from .types import kind
from .uses import tensors_of

_NARROW = ("+", "*")  # modulo 2**n: an integer may be narrowed before the operation instead of after it


def reduction(statement: Store | Assign, to: Type) -> Store | Assign:
    """Return the statement as a reduction into a target of type ``to``, or as it is.

    It is a reduction if the value is an operator on the target and an operand that does not read the target,
    in the target's own type. The operand may read other elements of the same buffer, as in a factorisation:
    the dependence analysis decides whether instances commute.
    """
    value, narrowed = statement.value, False
    if isinstance(value, Op) and value.name == "cast":
        inner = value.args[0]
        if not (isinstance(inner, Op) and inner.name in (*_NARROW, "-") and _integers(inner.type, to)):
            return statement
        if _width(inner.type) < _width(to):
            return statement
        value, narrowed = inner, True
    if not isinstance(value, Op) or value.name not in (*REDUCTIONS, "-") or len(value.args) != 2:
        return statement
    if not narrowed and value.type.dtype != to.dtype:
        return statement
    one, other = value.args
    if _is_target(one, statement):
        operand = other
    elif _is_target(other, statement) and value.name != "-":
        operand = one
    else:
        return statement
    if _reads(operand, statement):
        return statement
    operand = Op("cast", (operand,), to) if operand.type.dtype != to.dtype else operand
    if value.name == "-":
        return replace(statement, value=-operand, op="+")
    return replace(statement, value=operand, op=value.name)


def _integers(*types: Type) -> bool:
    return all(kind(t) in "iu" for t in types)


def _width(to: Type) -> int:
    return dtype(to.dtype).itemsize


def _is_target(expression: Expr, statement: Store | Assign) -> bool:
    if (
        isinstance(expression, Op)
        and expression.name == "cast"
        and _integers(expression.type, expression.args[0].type)
    ):
        expression = expression.args[0]
    if isinstance(statement, Assign):
        return isinstance(expression, Var) and expression.name == statement.name
    return (
        isinstance(expression, Load)
        and expression.buffer == statement.buffer
        and expression.index == statement.index
        and statement.buffer not in tensors_of(*statement.index)
    )


def _reads(expression: Expr, statement: Store | Assign) -> bool:
    """Whether an expression reads the target itself; other elements of its buffer do not count."""
    return any(_is_target(e, statement) for e in walk(expression))
