"""Gradient rules as functions whose text MindSpore's compiler can read."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import linecache
import types
from collections.abc import Callable
from typing import Any

from .written import function


def as_function(rule: Callable[..., Any] | None) -> types.FunctionType | None:
    """Return a rule with a text of its own; None for what is no plain function, or has no text.

    The compiler reads whole statements, so a ``lambda`` in the middle of one becomes a ``def``.
    """
    if not isinstance(rule, types.FunctionType):
        return None
    if rule.__name__ != "<lambda>":
        variadic = rule.__code__.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
        return None if variadic or not linecache.getlines(rule.__code__.co_filename) else rule
    body = _lambda_of(rule)
    if body is None:
        return None
    names = ", ".join(rule.__code__.co_varnames[: rule.__code__.co_argcount])
    free = dict(
        zip(rule.__code__.co_freevars, (cell.cell_contents for cell in rule.__closure__ or ()), strict=True)
    )
    read = _names_in(body)
    outside = {name: rule.__globals__[name] for name in read if name in rule.__globals__} | free
    text = _renamed(body, outside)
    made: types.FunctionType = function("rule", f"def rule{{n}}({names}):\n    return {text}", **outside)
    return made


def _lambda_of(rule: types.FunctionType) -> ast.Lambda | None:
    """Return the syntax of a lambda: the one on its line that has its arguments, names and place."""
    code = rule.__code__
    found = [node for node in _lambdas(code.co_filename) if node.lineno == code.co_firstlineno]
    same = [node for node in found if _alike(node, code)]
    if len(same) > 1 and hasattr(code, "co_positions"):
        places = [(line, column) for line, _, column, _ in code.co_positions() if line and column]
        same = [node for node in same if (node.body.lineno, node.body.col_offset) == min(places)]
    return same[0] if len(same) == 1 else None


@functools.lru_cache(maxsize=64)
def _lambdas(path: str) -> tuple[ast.Lambda, ...]:
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except SyntaxError:
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.Lambda))


def _alike(node: ast.Lambda, code: types.CodeType) -> bool:
    made = next(
        one
        for one in compile(ast.unparse(node), "<rule>", "eval").co_consts
        if isinstance(one, types.CodeType)
    )
    read = {*made.co_names, *made.co_freevars}
    same_names = read == {*code.co_names, *code.co_freevars}
    return same_names and made.co_varnames == code.co_varnames and made.co_consts == code.co_consts


def _names_in(node: ast.Lambda) -> set[str]:
    """Return the names that a lambda reads from outside."""
    names = [one for one in ast.walk(node) if isinstance(one, ast.Name)]
    own = {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}
    return {one.id for one in names} - own - {one.id for one in names if isinstance(one.ctx, ast.Store)}


def _renamed(node: ast.Lambda, outside: dict[str, Any]) -> str:
    class Rename(ast.NodeTransformer):
        def visit_Name(self, name: ast.Name) -> ast.Name:
            return ast.Name(f"{name.id}__n__", name.ctx) if name.id in outside else name

    return ast.unparse(Rename().visit(copy.deepcopy(node.body))).replace("__n__", "{n}")
