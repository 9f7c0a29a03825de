"""isl's sets of sizes as conditions of the IR: the opposite direction of affine.py."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from ..ir.grammar import BOOL, INT, Const, Expr, Op, Size, Var

_CONDITIONS = {
    "and_": "and",
    "and_then": "and",
    "or_": "or",
    "or_else": "or",
    "eq": "==",
    "le": "<=",
    "lt": "<",
    "ge": ">=",
    "gt": ">",
}
_NUMBERS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "max": "max",
    "min": "min",
    "minus": "neg",
    "div": "//",
    "fdiv_q": "//",
    "pdiv_q": "//",
    "pdiv_r": "%",
    "zdiv_r": "%",
}
"""isl's divisions: exact (div), towards minus infinity (fdiv), of numbers that are not negative (pdiv), and a
remainder that is only compared with zero (zdiv). Python's operators give the same for each of them."""


def condition_of(model: Any, sizes: Any) -> Expr:
    """Return an isl set of sizes and attributes as a condition on them, true inside the set."""
    build = model.isl.AstBuild.from_context(model.parameter_set([]))
    return _expression(build.expr_from_set(sizes), model.parameter_of_word)


def _expression(ast: Any, parameters: Mapping[str, Var | Size]) -> Expr:
    kind = ast.get_type().name
    if kind == "id":
        return parameters[ast.id_get_id().get_name()]
    if kind == "int":
        return Const(int(ast.int_get_val().to_python()), INT)
    name = ast.op_get_type().name
    args = [_expression(ast.op_get_arg(k), parameters) for k in range(ast.op_get_n_arg())]
    if name in ("cond", "select"):
        return Op("select", tuple(args), args[1].type)
    operator, result = (_CONDITIONS[name], BOOL) if name in _CONDITIONS else (_NUMBERS[name], INT)
    if len(args) == 1:
        return Op(operator, (args[0],), result)
    return functools.reduce(lambda a, b: Op(operator, (a, b), result), args)
