"""Gradient rules as functions whose text MindSpore's compiler can read."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import linecache
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .written import function

_FOREIGN = {"numpy", "array_api_compat", "torch", "jax", "scipy", "math", "ml_dtypes"}
"""Modules whose functions MindSpore's compiler cannot read."""

_READ = {"mindspore", "polyop", "builtins"}
"""Modules whose functions it can; it looks into all others."""


def as_function(rule: Callable[..., Any], count: int) -> types.FunctionType | None:
    """Return a function of ``count`` arguments that does what a rule does and has a text of its own.

    None for what has no text. The compiler reads whole statements, so a ``lambda`` in the middle of one
    becomes a ``def``; a method is read as its function, and a partial as what it calls.
    """
    if isinstance(rule, types.MethodType):
        return _with_fixed(rule.__func__, (rule.__self__,), {}, count)
    if isinstance(rule, functools.partial):
        return _with_fixed(rule.func, rule.args, rule.keywords, count)
    if isinstance(rule, types.FunctionType):
        return _of_function(rule, count)
    call = getattr(type(rule), "__call__", None)  # noqa: B004 - its text is wanted
    return _with_fixed(call, (rule,), {}, count) if isinstance(call, types.FunctionType) else None


def _of_function(rule: types.FunctionType, count: int) -> types.FunctionType | None:
    code = rule.__code__
    if code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return None
    if rule.__name__ != "<lambda>":
        return _own(rule) if linecache.getlines(code.co_filename) else None
    body = _lambda_of(rule)
    if body is None:
        return None
    names = code.co_varnames[: min(count, code.co_argcount)]
    outside = _outside(rule) | _left_out(rule, count)
    outside = {name: outside[name] for name in _names_in(body, names) if name in outside}
    text = f"def rule{{n}}({', '.join(names)}):\n    return {_renamed(body, outside)}"
    made: types.FunctionType = function("rule", text, **outside)
    return made


def _with_fixed(inner: Any, args: tuple[Any, ...], keywords: Any, count: int) -> types.FunctionType | None:
    read = as_function(inner, count + len(args)) if not keywords or _is_def(inner) else None
    if read is None:
        return None
    given = ", ".join(f"p{i}" for i in range(count))
    fixed = {f"fixed{i}_": value for i, value in enumerate(args)}
    named = {f"named_{name}_": value for name, value in keywords.items()}
    shown = [f"{name}{{n}}" for name in fixed] + [given]
    shown += [f"{name}=named_{name}_{{n}}" for name in keywords]
    text = f"def rule{{n}}({given}):\n    return inner{{n}}({', '.join(shown)})"
    made: types.FunctionType = function("rule", text, inner=read, **fixed, **named)
    return made


def _is_def(inner: Any) -> bool:
    return isinstance(inner, types.FunctionType) and inner.__name__ != "<lambda>"


def _own(rule: types.FunctionType) -> types.FunctionType:
    """Return the function without what it says that it wraps: the compiler would read that text."""
    if not hasattr(rule, "__wrapped__"):
        return rule
    code, defaults = rule.__code__, rule.__defaults__
    made = types.FunctionType(code, rule.__globals__, code.co_name, defaults, rule.__closure__)
    made.__kwdefaults__ = rule.__kwdefaults__
    return made


def foreign(rule: types.FunctionType) -> str:
    """Return what the compiler cannot read in a rule and the functions it calls; "" for nothing."""
    return _foreign(rule, set())


def _foreign(rule: types.FunctionType, seen: set[types.CodeType]) -> str:
    if rule.__code__ in seen:
        return ""
    seen.add(rule.__code__)
    outside = _outside(rule)
    for name in _read_names(rule.__code__):
        value = outside.get(name)
        if isinstance(value, (types.MethodType, functools.partial)):
            value = value.__func__ if isinstance(value, types.MethodType) else value.func
        module = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
        root = module.split(".", 1)[0] if isinstance(module, str) else ""
        if root in _FOREIGN:
            return f"it uses {module}"
        if not isinstance(value, types.FunctionType) or (root in _READ and not _is_made(value)):
            continue
        if hasattr(value, "__wrapped__"):
            return f"it calls {value.__qualname__}, whose text is not what runs: a decorator made it"
        found = _foreign(value, seen)
        if found:
            return found
    return ""


def _is_made(value: types.FunctionType) -> bool:
    return value.__module__ == function.__module__  # what polyop wrote calls the author's functions


def _read_names(code: types.CodeType) -> Iterator[str]:
    yield from (*code.co_names, *code.co_freevars)
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield from _read_names(one)


def _outside(rule: types.FunctionType) -> dict[str, Any]:
    """Return what a function's names mean outside of it."""
    cells = zip(rule.__code__.co_freevars, rule.__closure__ or (), strict=True)
    return {**rule.__globals__, **{name: cell.cell_contents for name, cell in cells}}


def _left_out(rule: types.FunctionType, count: int) -> dict[str, Any]:
    """Return the arguments that a call with ``count`` of them leaves at their defaults."""
    code, defaults = rule.__code__, rule.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    rows = list(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    return {name: value for name, value in rows if name in names[count:]} | (rule.__kwdefaults__ or {})


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


def _names_in(node: ast.Lambda, arguments: Sequence[str]) -> set[str]:
    """Return the names that a lambda reads from outside; what is left at its default is outside."""
    names = [one for one in ast.walk(node.body) if isinstance(one, ast.Name)]
    inner = {one.arg for one in ast.walk(node.body) if isinstance(one, ast.arg)}
    stored = {one.id for one in names if isinstance(one.ctx, ast.Store)}
    return {one.id for one in names} - set(arguments) - inner - stored


def _renamed(node: ast.Lambda, outside: dict[str, Any]) -> str:
    class Rename(ast.NodeTransformer):
        def visit_Name(self, name: ast.Name) -> ast.Name:
            return ast.Name(f"{name.id}__n__", name.ctx) if name.id in outside else name

    return ast.unparse(Rename().visit(copy.deepcopy(node.body))).replace("__n__", "{n}")
